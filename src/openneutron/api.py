"""`openneutron.compile`: one verb for PyTorch modules, exported programs and LiteRT files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from openneutron.convert import convert
from openneutron.errors import OptionError, not_a_model
from openneutron.files import kind_of, read_file
from openneutron.machine import targets
from openneutron.options import CONVERTERS, OPTIMIZE, Options
from openneutron.program import Program
from openneutron.quiet import quiet, without_torch_internals

__all__ = ["Program", "compile"]

Progress = Callable[[str], None]


def compile(
    source: Any,
    example_inputs: Sequence[Any] | None = None,
    *,
    calibration: Iterable[Any] | None = None,
    target: str = "imxrt700",
    converter: str = "open",
    optimize: str = "default",
    fit_bytes: int | None = None,
    fetch_constants_to_sram: bool = False,
    use_profiling: bool = False,
    operators_not_to_delegate: Sequence[str] = (),
    passes_off: Sequence[str] = (),
    per_channel: bool = False,
    channels_last: bool = False,
    int8_io: bool = False,
    recipe: str = "neutron",
    placement: str = "all",
    train: Callable[..., Any] | None = None,
    use_neutron_for_format_conversion: bool = False,
    dump_kernel_selection_code: bool = False,
    dump_intermediates: bool = False,
    certificate: bool = False,
    name: str = "",
    progress: Progress | None = None,
) -> Program:
    """Compile a model for a Neutron NPU: quantize it if it comes from PyTorch, lower it, compile it.

    `source` is an `nn.Module` (with `example_inputs` as `torch.export` takes them and `calibration`, an iterable of such
    inputs that look like real ones), an exported program (already quantized, or with `calibration`), or a LiteRT file by
    path or as bytes.

    `converter` is "open" (ours) or "nxp" (NXP's SDK, when installed); `optimize` is "fast", "default" or "max"; `fit_bytes`
    bounds I/O + scratch + prefetch. `operators_not_to_delegate` are names or globs of what stays on the CPU; `passes_off`
    names compiler passes to leave out. For PyTorch, `per_channel` gives each output channel of a convolution its own weight
    scale, `channels_last` makes the program take channels-last inputs, and `int8_io` makes it take and give INT8 (the
    report's notes have scales and zero points). `name` is what the report calls the model.
    `recipe` names the engines of a PyTorch program: "neutron" (the rest in portable kernels), "cortex_m" (no NPU) or
    "imxrt700cm" (Neutron first, Cortex-M operators for what is left). `placement="fastest"` leaves partitions on the CPU
    that it runs faster. `train` is a function of the prepared model (and a `recipes.Training`) that trains it with rounding
    in the loop; then no calibration is needed.
    `certificate` adds the proof of a LiteRT model's schedule to the intermediates (`openneutron certify` checks it).
    `progress` is called with the name of each stage as it begins.

    Example:
        >>> program = compile(model, (image,), calibration=[(x,) for x in images], target="imxrt700")
        >>> program.save("model.pte")
        >>> compile("model.tflite", target="mcxn94x").report.totals.cycles
    """
    stage: Progress = progress or (lambda text: None)
    _check_options(target, converter, optimize, fit_bytes)
    shared: dict[str, Any] = {
        "target": target,
        "converter": converter,
        "optimize": optimize,
        "fit_bytes": fit_bytes,
        "fetch_constants_to_sram": fetch_constants_to_sram,
        "use_profiling": use_profiling,
        "operators_not_to_delegate": _names("operators_not_to_delegate", operators_not_to_delegate),
        "passes_off": _names("passes_off", passes_off),
        "dump_kernel_selection_code": dump_kernel_selection_code,
        "dump_intermediates": dump_intermediates,
    }
    is_litert = isinstance(source, (str, os.PathLike, bytes, bytearray, memoryview))
    if certificate and not (is_litert and converter == "open"):
        raise OptionError("a certificate can only be written for a LiteRT model and the open converter")
    if is_litert:
        shared["certificate"] = certificate
        if example_inputs is not None or calibration is not None or per_channel or channels_last or int8_io:
            raise OptionError(
                "example_inputs, calibration, per_channel, channels_last and int8_io are for PyTorch models",
                hint="a LiteRT file brings its shapes and its quantization",
            )
        if recipe != "neutron" or placement != "all" or train is not None:
            raise OptionError(
                "recipe, placement and train are for PyTorch models",
                hint="a LiteRT file leaves what the NPU does not take to LiteRT",
            )
        return _compile_litert(source, name, stage, shared)
    return _compile_torch(
        source,
        example_inputs,
        calibration,
        stage,
        name=name,
        per_channel=per_channel,
        channels_last=channels_last,
        int8_io=int8_io,
        recipe=recipe,
        placement=placement,
        train=train,
        use_neutron_for_format_conversion=use_neutron_for_format_conversion,
        **shared,
    )


def _check_options(target: str, converter: str, optimize: str, fit_bytes: int | None) -> None:
    for field, value, known in (("converter", converter, CONVERTERS), ("optimize", optimize, OPTIMIZE)):
        if value not in known:
            raise OptionError(f"{field} is {value!r}", hint=f"one of {', '.join(known)}")
    if not isinstance(target, str):
        raise OptionError(f"target is {target!r}", hint=f"give a name: {', '.join(targets.names())}")
    if converter == "open":
        targets.load(target)
    if fit_bytes is not None and (not isinstance(fit_bytes, int) or fit_bytes < 1):
        raise OptionError(f"fit_bytes is {fit_bytes!r}", hint="give a number of bytes above 0, or None")


def _names(option: str, given: Sequence[str]) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given)
    for one in names:
        if not isinstance(one, str) or not one:
            raise OptionError(f"{option} contains {one!r}", hint="give names as strings")
    return names


def _compile_litert(source: Any, name: str, stage: Progress, shared: dict[str, Any]) -> Program:
    if isinstance(source, (bytes, bytearray, memoryview)):
        data, where = bytes(source), name or "<bytes>"
    else:
        stage("reading the model")
        data, where = read_file(source), name or Path(source).name
    if kind_of(data) == "pte":
        raise OptionError(
            "this is a compiled ExecuTorch program already", where=where, hint="compile its source instead"
        )
    stage("compiling")
    result = convert(data, Options(source=where, **shared))
    return Program(
        result.model,
        "tflite",
        result.report,
        result.kernel_selection_code,
        dict(result.intermediates),
        kernel_selections=result.kernel_selections,
        loader=_litert_runner,
    )


def _litert_runner(data: bytes, where: str) -> Callable[..., tuple[Any, ...]]:
    from openneutron.run.runner import runner_of  # only a program that is run needs the simulator

    return runner_of(data, where)


def _compile_torch(source: Any, example_inputs: Any, calibration: Any, stage: Progress, **options: Any) -> Program:
    if "torch" not in sys.modules:  # then it cannot be a model of torch's
        raise not_a_model(source)
    from openneutron.executorch.capture.batches import checked

    inputs, batches = checked(source, example_inputs, calibration, trained=options["train"] is not None)
    stage("loading torch and executorch")
    with quiet():  # torchao warns of optional parts for other machines
        from openneutron.executorch.pipeline import compile_module

    with without_torch_internals():
        return compile_module(source, inputs, calibration=batches, progress=stage, **options)
