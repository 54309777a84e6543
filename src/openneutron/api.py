"""`openneutron.compile`: one verb for PyTorch modules, exported programs, ONNX and LiteRT files."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openneutron.compile_litert import QUANTIZING, Choices, compile_litert
from openneutron.errors import OptionError, not_a_model
from openneutron.executorch.torch_lock import torch_lock
from openneutron.extras import extra
from openneutron.files import kind_of
from openneutron.machine import targets
from openneutron.options import LITERT, PUBLIC, TORCH, Options, check_options, refuse_inapplicable
from openneutron.program import Program
from openneutron.terminal.quiet import quiet, without_torch_internals
from openneutron.unsupported_files import refuse_unsupported_file

if TYPE_CHECKING:
    from openneutron.sandbox.supervisor import Limits

__all__ = ["Program", "compile"]

Progress = Callable[[str], None]

# What is said of a program after it is compiled, and changes nothing of it.
_BESIDE = ("flash_bytes", "duty", "battery")


def compile(
    source: Any,
    example_inputs: Sequence[Any] | None = None,
    *,
    calibration: Iterable[Any] | None = None,
    sizes: Mapping[str, int | Sequence[int]] | None = None,
    train: Callable[..., Any] | None = None,
    name: str = "",
    progress: Progress | None = None,
    isolated: bool | Limits = False,
    constant_methods: Mapping[str, Any] | None = None,
    methods: Mapping[str, Sequence[Any]] | None = None,
    **options: Any,
) -> Program:
    """Compile a model for a Neutron NPU: quantize it if it comes from PyTorch, lower it, compile it.

    `source` is an `nn.Module` (with `example_inputs` as `torch.export` takes them, or by the names of `forward`'s parameters,
    and `calibration`, an iterable of such inputs that look like real ones: tensors or numpy arrays, in batches of any size,
    or mappings, lists and tuples of them where the model takes such;
    labels behind the inputs, as data loaders give them, are left out), an exported program (already quantized, or with
    `calibration`; as a .pt2 file only with `trust`), or an ONNX or LiteRT file by path or as bytes. A float ONNX or
    LiteRT model needs `calibration`; `sizes` fixes the open dimensions of an ONNX model: a number by the name of a
    dimension, or a whole shape by the name of an input. `train` is a function of the prepared model (and a
    `recipes.Training`) that trains it with rounding in the loop; then no calibration is needed. `name` is what the report
    calls the model. `progress` is called with the name of each stage as it begins. With `isolated` a file is compiled in a
    sandbox: a process with limits (`sandbox.supervisor.Limits` for others), no network and no files. `constant_methods` are
    numbers that a .pte gives by name, such as get_bos_id; a decoder with a cache gives its context's length and others itself.
    `methods` are further methods of the program by name, each with example inputs: calls of the same module with inputs of
    other sizes, such as many tokens of a prompt at once. All methods share weights and states.

    Example:
        >>> program = compile(model, (image,), calibration=[(x,) for x in images], target="imxrt700")
        >>> program.save("model.pte")
        >>> compile("model.tflite", target="mcxn94x").report.totals.cycles
        >>> compile("model.onnx", sizes={"batch": 1}, calibration=[(x,) for x in images]).save("model.pte")
    """
    stage: Progress = progress or (lambda text: None)
    given = check_options(options, known={one.name: one for one in PUBLIC})
    given["target"] = targets.canonical_name(given.get("target", Options.target))
    if given.get("converter", Options.converter) == "open":
        targets.load(given["target"])
    if isolated:
        if example_inputs is not None or train is not None or constant_methods or methods:
            raise OptionError(
                "example_inputs, train, methods and constant_methods are for modules", hint="isolated is for files"
            )
        from openneutron.sandbox.compile_in_sandbox import compile_in_sandbox
        from openneutron.sandbox.supervisor import Limits

        stage("compiling in a sandbox")
        limits = Limits() if isolated is True else isolated
        return compile_in_sandbox(source, limits, given, sizes=sizes, calibration=calibration, name=name)
    trust, beside = given.pop("trust", False), {name: given.pop(name, None) for name in _BESIDE}
    _check_beside(beside)
    if isinstance(source, (str, os.PathLike)) and Path(source).suffix == ".pt2":
        source, example_inputs, calibration, name = _load_exported(source, trust, example_inputs, calibration, name)
    elif trust:
        raise OptionError("trust is for .pt2 files", hint="leave it out")
    cut, is_file = given.pop("cut_head", False), isinstance(source, (str, os.PathLike, bytes, bytearray, memoryview))
    if cut and not is_file:
        raise OptionError("cut_head is for ONNX and LiteRT files", hint="leave the end out of the module")
    if isinstance(source, (str, os.PathLike)):
        refuse_unsupported_file(Path(source))
    is_onnx = is_file and _is_onnx(source)
    if sizes and not is_onnx:
        raise OptionError("sizes are for ONNX models", hint="other models have fixed shapes")
    if is_onnx or not is_file:
        refuse_inapplicable(given, TORCH, hint="compile a partition's LiteRT model (dump_intermediates) with it")
        notes: tuple[str, ...] = ()
        names: tuple[str, ...] = ()
        if is_onnx:
            stage("importing the model")
            source, example_inputs, name, names, notes = _import_onnx(
                source, sizes, calibration, example_inputs, name, cut
            )
        program = _compile_torch(
            source,
            example_inputs,
            calibration,
            stage,
            names=names,
            name=name,
            train=train,
            constant_methods=constant_methods,
            methods=methods,
            **given,
        )
        return _with_notes(program, notes, beside)
    quantizing = {} if calibration is None else {name: given.pop(name) for name in QUANTIZING if name in given}
    refuse_inapplicable(
        given, LITERT, hint="a LiteRT file brings its own quantization and layout, and leaves the rest to LiteRT"
    )
    if example_inputs is not None or train is not None or constant_methods or methods:
        raise OptionError(
            "example_inputs, train, methods and constant_methods are for PyTorch models",
            hint="a LiteRT file brings its shapes",
        )
    program = compile_litert(source, name, stage, given, calibration, cut=cut, choices=Choices(**quantizing))
    return _with_notes(program, (), beside)


def _check_beside(beside: Mapping[str, Any]) -> None:
    """Raise an `OptionError` for a duty or battery that cannot be read, before anything is compiled."""
    if beside["duty"] or beside["battery"]:
        from openneutron.board.energy import with_energy
        from openneutron.report.model import Report

        with_energy(Report(), beside["duty"] or "", beside["battery"] or "")


def _with_notes(program: Program, notes: tuple[str, ...], beside: Mapping[str, Any]) -> Program:
    """Add an importer's notes, the size of the board's flash and the energy to the program's report."""
    report = replace(program.report, notes=(*program.report.notes, *notes), flash_bytes=beside["flash_bytes"] or 0)
    if beside["duty"]:
        from openneutron.board.energy import with_energy

        report = with_energy(report, beside["duty"], beside["battery"] or "")
    return replace(program, report=report)


def _document(function: Callable[..., Any]) -> None:
    """Give `compile` the signature and the description of every option, from their one table."""
    shown = inspect.signature(function)
    fixed = [one for one in shown.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    keywords = [inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default) for one in PUBLIC]
    vars(function)["__signature__"] = shown.replace(parameters=[*fixed, *keywords])
    lines = "\n".join(f"        {one.name}: {one.help}" for one in PUBLIC)
    function.__doc__ = f"{(function.__doc__ or '').rstrip()}\n\n    Options:\n{lines}\n    "


_document(compile)


def _is_onnx(source: Any) -> bool:
    """Whether a path (by its suffix) or bytes (by their first ones) are an ONNX model."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return kind_of(bytes(source[:8])) == "onnx"
    return Path(source).suffix == ".onnx"


def _load_exported(
    source: Any, trust: bool, example_inputs: Any, calibration: Any, name: str
) -> tuple[Any, Any, Any, str]:
    """Load a .pt2 file; inputs and calibration that are not given are taken from the file."""
    with extra("an exported program"):
        from openneutron.executorch.capture.sources import find

    with torch_lock(), quiet():
        loaded = find(os.fspath(source), trust=trust).load()
    examples = loaded.example_inputs if example_inputs is None else example_inputs
    return loaded.model, examples, loaded.calibration if calibration is None else calibration, name or loaded.name


def _import_onnx(
    source: Any,
    sizes: Mapping[str, int | Sequence[int]] | None,
    calibration: Any,
    example_inputs: Any,
    name: str,
    cut: bool,
) -> tuple[Any, tuple[Any, ...], str, tuple[str, ...], tuple[str, ...]]:
    """Import an ONNX model: a program or module, example inputs, its name, its inputs' names and notes."""
    with torch_lock(), quiet(), extra("an ONNX model", "onnx"):
        from openneutron.onnx.importer import load

    if example_inputs is not None:
        raise OptionError("example_inputs are for PyTorch models", hint="give sizes; an ONNX model knows its inputs")
    with torch_lock():
        found = load(source, sizes=sizes, name=name, cut=cut, anew=calibration is not None)
    stem = name or ("model" if isinstance(source, (bytes, bytearray, memoryview)) else Path(source).stem)
    if found.quantized and calibration is not None:
        raise OptionError("the model is quantized already", where=found.where, hint=found.keeps_scales)
    model = found.program if found.quantized else found.module
    return model, found.example_inputs, stem, tuple(found.inputs), found.notes


def _compile_torch(
    source: Any, example_inputs: Any, calibration: Any, stage: Progress, *, names: Sequence[str] = (), **options: Any
) -> Program:
    if "torch" not in sys.modules:  # then it cannot be a model of torch's
        raise not_a_model(source)
    with torch_lock():  # while another thread exports, torch has functions of its modules replaced
        with extra("a PyTorch model"):
            from openneutron.executorch.capture.batches import check_data
            from openneutron.executorch.capture.structure import flat

        given = check_data(source, example_inputs, calibration, trained=options["train"] is not None, names=names)
        if given.structure is not None:
            source = flat(source, given.structure)
        stage("loading torch and executorch")
        with quiet(), extra("a PyTorch model"):  # torchao warns of optional parts for other machines
            from openneutron.executorch.upstream.load_exporter import load_exporter

            load_exporter()
            from openneutron.executorch.pipeline import compile_module

        with without_torch_internals():
            program = compile_module(
                source, given.inputs, calibration=given.batches, progress=stage, structure=given.structure,
                **{"quality": Options.quality, **options},
            )  # fmt: skip
    report = replace(program.report, notes=(*program.report.notes, *given.notes))
    return replace(program, report=report, input_names=tuple(names) or program.input_names)
