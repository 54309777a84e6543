"""Checks before any work: refuse numbers that no scale can store, and types that no operator here computes in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch.export import ExportedProgram
from torch.nn.parameter import is_lazy

from openneutron.errors import UnsupportedError
from openneutron.executorch.fx import PER_CHANNEL, arguments, is_dequantize, is_quantize, operator_name

Inputs = tuple[torch.Tensor, ...]

_STATISTICS = (".running_mean", ".running_var")
# Integer and boolean inputs are accepted: they stay on the CPU, with a reason.
_OTHER_FLOATS = (torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128)


def check_model(source: torch.nn.Module | ExportedProgram) -> None:
    """Refuse weights that are not finite float32 numbers; an infinite buffer (a mask) is allowed."""
    parameters = source.named_parameters()
    buffers = source.named_buffers()
    for name, value in parameters:
        _check_stored(f"parameter {name}", value)
        _check_type(f"parameter {name}", value.dtype, "convert the model with model.float()")
        _check_finite(f"parameter {name}", value, "train again without overflow, or load other weights")
    for name, value in buffers:
        _check_stored(f"buffer {name}", value)
        if f".{name}".endswith(_STATISTICS):
            _check_finite(f"statistic {name}", value, "train again without overflow, or load other weights")
        elif value.is_floating_point() and bool(torch.isnan(value).any()):
            raise UnsupportedError(f"buffer {name} contains NaN", hint="give it a value")


def check_samples(example_inputs: Inputs, batches: Iterable[Inputs]) -> None:
    """Refuse inputs of a type that no operator computes in, and calibration data without a range."""
    for position, value in enumerate(example_inputs):
        _check_stored(f"example input {position}", value)
        _check_type(f"example input {position}", value.dtype, "give float32, and convert the model with model.float()")
    for number, batch in enumerate(batches):
        for position, value in enumerate(batch):
            what = f"input {position} of calibration sample {number}"
            _check_stored(what, value)
            # Minus infinity forbids: a mask has it, and what reads the mask decides whether it can be compiled.
            given = value.masked_fill(value == -torch.inf, 0.0) if value.is_floating_point() else value
            _check_finite(what, given, "leave that sample out, or repair what makes it")


def check_scales(program: ExportedProgram) -> None:
    """Refuse a program with a scale that is zero, negative or not finite, because values are divided by it."""
    signature = program.graph_signature
    constants = {**program.state_dict, **program.constants}
    names = {
        **signature.inputs_to_buffers,
        **signature.inputs_to_parameters,
        **signature.inputs_to_lifted_tensor_constants,
    }
    for node in program.graph.nodes:
        if not (is_quantize(node) or is_dequantize(node)):
            continue
        given = arguments(node)
        scales = (
            [given["scale"]] if operator_name(node) not in PER_CHANNEL else _scales(given["scales"], names, constants)
        )
        for scale in scales:
            if isinstance(scale, (int, float)) and not 0 < scale < float("inf"):
                raise UnsupportedError(
                    f"{node.name} has a scale of {scale}", hint="calibrate on real data without NaN or infinity"
                )


def _scales(node: object, names: dict[str, str], constants: dict[str, object]) -> Sequence[float]:
    found = constants.get(names.get(getattr(node, "name", ""), ""))
    return [float(scale) for scale in found.reshape(-1)] if isinstance(found, torch.Tensor) else []


def _check_stored(what: str, value: torch.Tensor) -> None:
    """Refuse a tensor whose data cannot be read here: on the meta or another device, or not dense."""
    if is_lazy(value):
        raise UnsupportedError(f"{what} is not initialized", hint="run the model once on example inputs")
    if value.device.type == "meta":
        raise UnsupportedError(f"{what} is on the meta device and has no values", hint="load weights first")
    if value.device.type != "cpu":
        raise UnsupportedError(f"{what} is on {value.device}", hint="move it with .cpu()")
    if value.layout != torch.strided:
        layout = str(value.layout).removeprefix("torch.")
        raise UnsupportedError(f"{what} is {layout}, not dense", hint="convert it with .to_dense()")


def _check_type(what: str, dtype: torch.dtype, hint: str) -> None:
    if dtype in _OTHER_FLOATS:
        raise UnsupportedError(f"{what} is {str(dtype).removeprefix('torch.')}, not float32", hint=hint)


def _check_finite(what: str, value: torch.Tensor, hint: str) -> None:
    if not value.is_floating_point() or bool(torch.isfinite(value).all()):
        return
    kind = "NaN" if bool(torch.isnan(value).any()) else "infinity"
    raise UnsupportedError(f"{what} contains {kind}", hint=hint)
