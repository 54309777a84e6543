"""`openneutron.compile`: one verb for PyTorch modules, exported programs and LiteRT files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from openneutron import targets
from openneutron._quiet import quiet, without_torch_internals
from openneutron.convert import CONVERTERS, OPTIMIZE, Options, convert
from openneutron.errors import OptionError
from openneutron.files import kind_of, read_file
from openneutron.program import Program

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
    )


def _compile_torch(source: Any, example_inputs: Any, calibration: Any, stage: Progress, **options: Any) -> Program:
    torch = sys.modules.get("torch")
    is_module = torch is not None and isinstance(source, torch.nn.Module)
    is_exported = torch is not None and isinstance(source, torch.export.ExportedProgram)
    if not is_module and not is_exported:
        raise OptionError(
            f"the model is a {type(source).__name__}",
            hint="give an nn.Module, an ExportedProgram, or a LiteRT file by path or as bytes",
        )
    if is_module and example_inputs is None:
        raise OptionError("example_inputs is missing", hint="give a tuple of tensors, as for torch.export.export")
    inputs = None if example_inputs is None else _inputs("example_inputs", example_inputs)
    batches = None if calibration is None else _calibration(calibration, inputs)
    if is_module and not batches and options["train"] is None:
        raise OptionError(
            "calibration is missing" if calibration is None else "calibration is empty",
            hint="give inputs that look like real ones, e.g. calibration=[(image,) for image in images]; "
            "they set the INT8 ranges",
        )
    stage("loading torch and executorch")
    with quiet():  # torchao warns of optional parts for other machines
        from openneutron.executorch.pipeline import compile_module

    with without_torch_internals():
        return compile_module(source, inputs, calibration=batches, progress=stage, **options)


def _inputs(what: str, given: Any) -> tuple[Any, ...]:
    import torch

    if isinstance(given, torch.Tensor):
        raise OptionError(f"{what} is a tensor", hint=f"give a tuple of tensors: ({what},)")
    if not isinstance(given, (tuple, list)) or not given:
        raise OptionError(f"{what} is a {type(given).__name__}", hint="give a tuple of tensors")
    for position, value in enumerate(given):
        if not isinstance(value, torch.Tensor):
            raise OptionError(f"{what}[{position}] is a {type(value).__name__}", hint="give tensors")
    return tuple(given)


def _calibration(given: Any, inputs: tuple[Any, ...] | None) -> list[tuple[Any, ...]]:
    """The calibration data as a list of input tuples of the shapes of the example inputs; larger batches are split."""
    import torch

    if isinstance(given, torch.Tensor) or not isinstance(given, Iterable):
        raise OptionError(
            f"calibration is a {type(given).__name__}",
            hint="give a list of input tuples: [(image,) for image in images]",
        )
    batches: list[tuple[Any, ...]] = []
    for position, batch in enumerate(given):
        what = f"calibration[{position}]"
        one = _inputs(what, (batch,) if isinstance(batch, torch.Tensor) else batch)
        batches += [one] if inputs is None else _split(what, one, inputs)
    return batches


def _split(what: str, batch: tuple[Any, ...], inputs: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """A batch cut along its first dimension into pieces of the size of the example inputs."""
    counts = set()
    for given, wanted in zip(batch, inputs, strict=False):
        fits = given.ndim == wanted.ndim and given.shape[1:] == wanted.shape[1:] and given.dtype == wanted.dtype
        rows, step = (given.shape[0], wanted.shape[0]) if fits and given.ndim else (1, 1)
        counts.add(rows // step if fits and rows % step == 0 else 0)
    if len(batch) != len(inputs) or len(counts) != 1 or counts == {0}:
        described = [", ".join(f"{x.dtype} {list(x.shape)}" for x in values) for values in (batch, inputs)]
        raise OptionError(
            f"{what} is {described[0]}", hint=f"give what example_inputs is: {described[1]}, or a whole number of them"
        )
    (count,) = counts
    return [tuple(pieces) for pieces in zip(*(x.chunk(count) if count > 1 else (x,) for x in batch), strict=True)]
