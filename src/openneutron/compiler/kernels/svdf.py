"""SVDF in integers: INT8 input and output, a 16-bit memory of each filter's last outputs (docs/numerics.md, SVDF)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import QUANTIZE_HINT, int8_activations, not_empty, require_input
from openneutron.compiler.l1 import Node
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.numbers.multipliers import MAX_LEFT_SHIFT, f32, multiplier
from openneutron.compiler.numbers.packing import fold_zero_point, pack_dense
from openneutron.compiler.signature import OpSignature
from openneutron.litert.graph import DType
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.microcode.table import Rounding
from openneutron.verdict import OK, Verdict, limit, no

FEATURE, TIME, BIAS, MEMORY = 1, 2, 3, 4  # positions of the operator's inputs
_MOST = 1 << 14  # filters and steps that the kernel takes
_RELU = 1  # of the schema's ActivationFunctionType


@dataclass(frozen=True)
class SvdfParams:
    """Parameters of an `svdf` call."""

    rank: int = param("filters of one unit")
    steps: int = param("outputs that each filter remembers")
    filter_multiplier: int = param("brings a filter's product to the memory's scale")
    filter_shift: int = param("power of two that goes with it")
    output_multiplier: int = param("brings a unit's sum to the output's scale")
    output_shift: int = param("power of two that goes with it")
    output_zero: int = param("added last")


ABI = register(
    KernelAbi(
        id=32,
        name="svdf",
        abi=1,
        operands=("input", "weights", "table", "memory", "output"),
        params=SvdfParams,
        cost="recurrent",
        meaning="rank-1 filters over the last inputs; weights of the features, table of filters' and units' biases (INT32) "
        "and of the weights in time (INT16), a memory of INT16",
        dense=True,
    )
)


@limit("weights must be constant: INT8 for features, INT16 in time, of one scale and zero point 0")
def weights_fit(op: OpSignature, target: Target) -> Verdict:
    for position, dtype in ((FEATURE, DType.INT8), (TIME, DType.INT16)):
        w = require_input(op, position)
        if not w.constant or w.dtype is not dtype:
            hint = "LiteRT computes SVDF with 16-bit weights in time" if position == TIME else QUANTIZE_HINT
            return no(f"{w.name!r} is {w.dtype}{'' if w.constant else ', computed at run time'}", hint=hint)
        if w.quantization is None or len(w.quantization.scale) != 1 or any(w.quantization.zero_point):
            return no(f"{w.name!r} is not quantized so", hint="quantize recurrent weights per tensor, symmetrically")
    return OK


@limit("the memory must be a variable INT16 tensor with zero point 0; the bias, where given, constant INT32")
def memory_fits(op: OpSignature, target: Target) -> Verdict:
    memory, bias = op.input(MEMORY), op.input(BIAS)
    if memory is None or not memory.variable:
        return no("it is not a variable tensor", hint="convert the model again")
    if memory.dtype is not DType.INT16 or memory.zero_point or not memory.scale > 0:
        hint = "LiteRT's kernel reads an INT8 memory as INT16: convert with a 16-bit memory"
        return no(f"{memory.name!r} is {memory.dtype} with zero point {memory.zero_point}", hint=hint)
    if bias is not None and (not bias.constant or bias.dtype is not DType.INT32):
        return no(f"the bias is {bias.dtype}")
    return OK


@limit("shapes must be [batch, inputs], [filters, inputs], [filters, steps], [units], [batch, filters x steps]")
def shapes_match(op: OpSignature, target: Target) -> Verdict:
    x, y, feature, time, bias = (
        require_input(op, 0),
        op.outputs[0],
        require_input(op, FEATURE),
        require_input(op, TIME),
        op.input(BIAS),
    )
    memory, rank = require_input(op, MEMORY), op.options.rank
    if any(len(one.shape) != 2 for one in (x, y, feature, time, memory)) or rank < 1:
        return no(f"input {list(x.shape)}, features {list(feature.shape)}, memory {list(memory.shape)}, rank {rank}")
    filters, steps = time.shape
    if feature.shape != (filters, x.shape[1]) or filters % rank or y.shape != (x.shape[0], filters // rank):
        return no(f"features {list(feature.shape)}, time {list(time.shape)}, rank {rank}, output {list(y.shape)}")
    if memory.shape != (x.shape[0], filters * steps):
        return no(f"the memory is {list(memory.shape)}, not {[x.shape[0], filters * steps]}")
    if bias is not None and bias.shape != (filters // rank,):
        return no(f"the bias is {list(bias.shape)} for {filters // rank} units")
    return OK if max(filters, steps) <= _MOST else no(f"{filters} filters of {steps} steps")


@limit("the activation must be RELU, as LiteRT demands of its integer kernel, and factors below 2^30")
def options_fit(op: OpSignature, target: Target) -> Verdict:
    if op.options.fusedActivationFunction != _RELU:
        return no(f"the activation is number {op.options.fusedActivationFunction}", hint="LiteRT refuses the model too")
    largest = max(shift for _, shift in _factors(op))
    return OK if largest <= MAX_LEFT_SHIFT else no(f"a factor has {largest} bits", hint="calibrate on real data")


def _factors(op: OpSignature) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the multipliers of filters and units; products and quotients are float32 in LiteRT."""
    memory = require_input(op, MEMORY).scale
    first = f32(f32(require_input(op, 0).scale * require_input(op, FEATURE).scale) / memory)
    return multiplier(first), multiplier(f32(f32(memory * require_input(op, TIME).scale) / op.outputs[0].scale))


@serves("SVDF", limits=(int8_activations, not_empty, weights_fit, memory_fits, shapes_match, options_fit))
def legalize(state: Legalizer) -> None:
    """Emit one node on one row: each run is one step, so the memory is a state."""
    op = state.signature
    x, y = require_input(op, 0), op.outputs[0]
    feature, time = np.asarray(state.constant(FEATURE), np.int8), np.asarray(state.constant(TIME), np.int16)
    filters, steps = time.shape
    folded = fold_zero_point(np.zeros(filters, np.int64), feature, x.zero_point).astype(np.int32)
    bias = (
        np.asarray(state.constant(BIAS), np.int32)
        if state.has(BIAS)
        else np.zeros(filters // op.options.rank, np.int32)
    )
    table = np.concatenate([part.reshape(-1).view(np.uint8) for part in (folded, bias, np.ascontiguousarray(time))])
    first, second = _factors(op)
    batch = x.shape[0]
    state.emit(
        Node(
            kernel=ABI.name,
            operands=[
                state.view(state.value(0), (1, 1, batch, x.shape[1]), x.name),
                pack_dense(feature.reshape(filters, 1, -1), state.target.units, state.target.length),
                table, state.variable_tensor(MEMORY), state.output(),
            ],
            output=state.output(),
            params=SvdfParams(op.options.rank, steps, *first, *second, y.zero_point),
            rounding=Rounding.DOUBLE,
            macs=batch * filters * (x.shape[1] + steps),
        )
    )  # fmt: skip
