"""UNIDIRECTIONAL_SEQUENCE_LSTM in integers: INT8 input and output, 16-bit gates and cell state (docs/numerics.md, LSTM).

The steps are the rows of one call: microcode and weights do not grow with their number. Hidden and cell state are variable
tensors, which persist from run to run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import QUANTIZE_HINT, int8_activations, not_empty, require_input
from openneutron.compiler.l1 import Node, RowDemand, Value
from openneutron.compiler.legalizer import Legalizer, shape4
from openneutron.compiler.numbers.multipliers import f32, multiplier
from openneutron.compiler.numbers.packing import fold_zero_point, pack_dense
from openneutron.compiler.signature import OpSignature
from openneutron.litert.graph import DType
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.microcode.table import ElementType, Rounding
from openneutron.verdict import OK, Verdict, limit, no

# Positions of the operator's inputs; gates in LiteRT's order: input, forget, cell, output.
INPUT_WEIGHTS, HIDDEN_WEIGHTS, PEEPHOLES, BIASES, NORMS = (
    (1, 2, 3, 4),
    (5, 6, 7, 8),
    (9, 10, 11),
    (12, 13, 14, 15),
    (20, 21, 22, 23),
)
PROJECTION, PROJECTION_BIAS, HIDDEN, CELL = 16, 17, 18, 19
# Gates in the kernel's order, as positions in the tuples above; a coupled input gate comes last and is left out.
GATES = (1, 2, 3, 0)
_PEEPHOLE_OF = {0: 0, 1: 1, 3: 2}  # gate → position in PEEPHOLES; the cell gate has none
COUPLED, PEEPHOLE, NORMALIZE, PROJECT = 1, 2, 4, 8
_GATE_SCALE = 2.0**-12  # gates are Q3.12 before their function
_TANH = 4  # of the schema's ActivationFunctionType
_LEAST_EXPONENT, _MOST_EXPONENT = (
    -15,
    -9,
)  # of the cell state's scale: 0 to 6 integer bits, as far as LiteRT's tanh goes
_GUARD = 10000  # LiteRT's least variance, in steps of the coefficients
_MOST = 1 << 14  # cells and channels that the kernel takes
_LEAST_SCALE, _MOST_SCALE = 2.0**-40, 2.0**40  # two of them over a third stay in float32


@dataclass(frozen=True)
class LstmParams:
    """Parameters of an `lstm` call."""

    cells: int = param("cells of the layer")
    flags: int = param("1 input gate coupled to the forget gate, 2 peepholes, 4 layer normalization, 8 projection")
    hidden_multiplier: int = param("brings output gate times tanh to the hidden state's scale")
    hidden_shift: int = param("power of two that goes with it")
    hidden_zero: int = param("zero point of the hidden state before a projection")
    projection_multiplier: int = param("brings the projection to the output's scale")
    projection_shift: int = param("power of two that goes with it")
    output_zero: int = param("zero point of the output")
    cell_scale: int = param("scale of the cell state as a power of two, -15 to -9")
    cell_clip: int = param("largest magnitude of the cell state; 0: no limit")
    projection_clip: int = param("largest magnitude of the projection; 0: no limit")


ABI = register(
    KernelAbi(
        id=31,
        name="lstm",
        abi=1,
        operands=("input", "weights", "table", "hidden", "cell", "workspace", "output"),
        params=LstmParams,
        cost="recurrent",
        meaning="LSTM; rows are steps, images and pixels sequences; gates forget, cell, output, input: "
        "weights of input and hidden state, table of factors, biases, peepholes and coefficients",
    )
)


@limit("INT8 weights of one scale and zero point 0, constant, where they are given")
def weights_are_int8(op: OpSignature, target: Target) -> Verdict:
    for position in (*INPUT_WEIGHTS, *HIDDEN_WEIGHTS, PROJECTION):
        w = op.input(position)
        if w is None:
            continue
        if not w.constant or w.dtype is not DType.INT8:
            return no(f"{w.name!r} is {w.dtype}{'' if w.constant else ', computed at run time'}", hint=QUANTIZE_HINT)
        if w.quantization is None or len(w.quantization.scale) != 1 or any(w.quantization.zero_point):
            return no(f"{w.name!r} is not quantized so", hint="quantize recurrent weights per tensor, symmetrically")
    return OK


@limit("forget, cell and output gate must be whole; the input gate whole, or absent (coupled)")
def gates_are_whole(op: OpSignature, target: Target) -> Verdict:
    parts = [(INPUT_WEIGHTS[gate], HIDDEN_WEIGHTS[gate], BIASES[gate]) for gate in range(4)]
    given = [[op.input(position) is not None for position in part] for part in parts]
    if not all(map(all, given[1:])):
        return no("weights or a bias are missing", hint="convert the model again")
    if any(given[0]) and not all(given[0]):
        return no("the input gate has weights or a bias, but not all")
    return OK


@limit("shapes must be those of LiteRT: [cells, inputs], [cells, outputs], [cells], [outputs, cells]")
def shapes_match(op: OpSignature, target: Target) -> Verdict:
    x, y = require_input(op, 0), op.outputs[0]
    if len(x.shape) != 3 or len(y.shape) != 3 or x.shape[:2] != y.shape[:2]:
        return no(f"input {list(x.shape)}, output {list(y.shape)}", hint="sequences have three dimensions")
    cells, inputs, outputs = require_input(op, INPUT_WEIGHTS[3]).shape[0], x.shape[2], y.shape[2]
    batch = x.shape[1 if op.options.timeMajor else 0]
    wanted: dict[int, tuple[int, ...]] = dict.fromkeys(INPUT_WEIGHTS, (cells, inputs))
    wanted |= dict.fromkeys(HIDDEN_WEIGHTS, (cells, outputs))
    wanted |= dict.fromkeys((*PEEPHOLES, *BIASES, *NORMS), (cells,))
    wanted |= {PROJECTION: (outputs, cells), PROJECTION_BIAS: (outputs,)}
    for position, shape in wanted.items():
        tensor = op.input(position)
        if tensor is not None and tensor.shape != shape:
            return no(f"{tensor.name!r} is {list(tensor.shape)}, not {list(shape)}")
    for position, size in ((HIDDEN, batch * outputs), (CELL, batch * cells)):
        if math.prod(require_input(op, position).shape) != size:
            return no(
                f"state {require_input(op, position).name!r} is {list(require_input(op, position).shape)}, not {size} elements"
            )
    if op.input(PROJECTION) is None and cells != outputs:
        return no(f"{cells} cells give {outputs} outputs without a projection")
    return OK if max(cells, inputs, outputs) <= _MOST else no(f"{max(cells, inputs, outputs)} cells or channels")


@limit("biases must be constant INT32; peepholes and layer-norm coefficients constant INT16; all or none of each")
def vectors_are_constant(op: OpSignature, target: Target) -> Verdict:
    for positions, dtype in (((*BIASES, PROJECTION_BIAS), DType.INT32), ((*PEEPHOLES, *NORMS), DType.INT16)):
        for position in positions:
            tensor = op.input(position)
            if tensor is not None and (not tensor.constant or tensor.dtype is not dtype):
                return no(f"{tensor.name!r} is {tensor.dtype}{'' if tensor.constant else ', computed at run time'}")
    coupled = op.input(INPUT_WEIGHTS[0]) is None
    vectors: tuple[tuple[str, tuple[int, ...]], ...] = (("peepholes", PEEPHOLES), ("coefficients", NORMS))
    for what, places in vectors:
        given = [op.input(position) is not None for position in places[1 if coupled else 0 :]]
        if any(given) and not all(given):
            return no(f"some {what} are missing")
        scales = [t for position in places if (t := op.input(position)) is not None and not t.scale > 0]
        if scales:
            return no(f"{scales[0].name!r} has no scale")
    return OK


@limit("hidden and cell state must be variable tensors: INT8 as the output, and INT16 with scale 2^-15 to 2^-9")
def states_match(op: OpSignature, target: Target) -> Verdict:
    hidden, cell, y = op.input(HIDDEN), op.input(CELL), op.outputs[0]
    if hidden is None or cell is None or not (hidden.variable and cell.variable):
        return no("a state is not a variable tensor", hint="convert the model again")
    if hidden.dtype is not DType.INT8 or cell.dtype is not DType.INT16:
        return no(f"they are {hidden.dtype} and {cell.dtype}")
    if (hidden.scale, hidden.zero_point) != (y.scale, y.zero_point):
        return no(f"the hidden state is {hidden.scale:g}/{hidden.zero_point}, the output {y.scale:g}/{y.zero_point}")
    mantissa, exponent = math.frexp(cell.scale)
    if mantissa != 0.5 or not _LEAST_EXPONENT <= exponent - 1 <= _MOST_EXPONENT or cell.zero_point:
        why = f"the cell state has scale {cell.scale:g} and zero point {cell.zero_point}"
        return no(why, hint="quantize the cell state to a power of two: LiteRT computes nothing sensible otherwise")
    return OK


@limit("the activation must be TANH, clips at least 0, and five intermediates quantized")
def options_fit(op: OpSignature, target: Target) -> Verdict:
    options = op.options
    if options.fusedActivationFunction != _TANH:
        return no(f"the activation is number {options.fusedActivationFunction}", hint="use tanh")
    clips_fit = all(0 <= clip < math.inf for clip in (options.cellClip, options.projClip))
    if not clips_fit or getattr(options, "diagonalRecurrentTensors", False):
        return no("a clip is negative or no number, or recurrent weights are diagonal")
    if len(op.intermediates) != 5:
        return no(
            f"{len(op.intermediates)} intermediates are given", hint="convert the model to INT8 with calibration data"
        )
    hidden, y = op.intermediates[4], op.outputs[0]
    if op.input(PROJECTION) is None and (hidden.scale, hidden.zero_point) != (y.scale, y.zero_point):
        return no(
            f"the last intermediate is {hidden.scale:g}/{hidden.zero_point}, the output {y.scale:g}/{y.zero_point}"
        )
    needed = op.intermediates if op.input(NORMS[1]) is not None else op.intermediates[4:]
    if not all(one.scale > 0 and -(2**15) <= one.zero_point < 2**15 for one in needed):
        return no("an intermediate has no scale, or a zero point of more than 16 bits")
    places = (0, HIDDEN, *INPUT_WEIGHTS, *HIDDEN_WEIGHTS, *PEEPHOLES, *NORMS, PROJECTION)
    scales = [tensor.scale for place in places if (tensor := op.input(place)) is not None]
    extreme = [scale for scale in (*scales, *(one.scale for one in needed)) if not _LEAST_SCALE <= scale <= _MOST_SCALE]
    return no(f"a scale is {extreme[0]:g}") if extreme else OK


def _words(*values: Any) -> npt.NDArray[np.int32]:
    wide = np.concatenate([np.atleast_1d(np.asarray(value, np.int64)) for value in values])
    return ((wide + (1 << 31)) % (1 << 32) - (1 << 31)).astype(np.int32)


def _factor(*scales: float, over: float) -> tuple[int, int]:
    """Multiplier of a product of scales over another, rounded to float32 after each step as LiteRT does."""
    product = scales[0]
    for scale in scales[1:]:
        product = f32(product * scale)
    return multiplier(f32(product / over))


def _gate(state: Legalizer, gate: int, exponent: int) -> tuple[list[npt.NDArray[np.uint8]], npt.NDArray[np.int32]]:
    """Packed weights and table words of one gate."""
    op = state.signature
    x, h = require_input(op, 0), require_input(op, HIDDEN)
    units, length = state.target.units, state.target.length
    normalized = op.input(NORMS[1]) is not None
    scale = op.intermediates[gate].scale if normalized else _GATE_SCALE
    packed, factors, sums = [], [], []
    for position, source in ((INPUT_WEIGHTS[gate], x), (HIDDEN_WEIGHTS[gate], h)):
        weights = np.asarray(state.constant(position), np.int8)
        bias = np.zeros(weights.shape[0], np.int64)
        if source is x and not normalized:
            bias += state.constant(BIASES[gate])
        packed.append(pack_dense(weights.reshape(weights.shape[0], 1, -1), units, length))
        factors.append(_factor(require_input(op, position).scale, source.scale, over=scale))
        sums.append(fold_zero_point(bias, weights, source.zero_point))
    peephole, coefficients, guard = (0, 0), (0, 0), 1
    vectors: list[Any] = []
    if op.input(PEEPHOLES[1]) is not None:
        position = PEEPHOLES[_PEEPHOLE_OF[gate]] if gate in _PEEPHOLE_OF else -1
        weight = op.input(position) if position >= 0 else None
        if weight is not None:
            peephole = _factor(2.0**exponent, weight.scale, over=scale)
        vectors.append(state.constant(position) if weight is not None else np.zeros(len(sums[0]), np.int64))
    if normalized:
        norm = require_input(op, NORMS[gate])
        fixed, shift = multiplier(norm.scale)
        coefficients = fixed, shift + 12
        guard = max(1, int(f32(_GUARD * norm.scale)))
        vectors += [state.constant(NORMS[gate]), state.constant(BIASES[gate])]
    return packed, _words(*factors[0], *factors[1], *peephole, *coefficients, guard, *sums, *vectors)


def _clip(real: float, scale: float, most: int) -> int:
    return int(min(max(f32(real / scale), -most - 1), most))


@serves(
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    limits=(
        int8_activations, not_empty, gates_are_whole, weights_are_int8, vectors_are_constant, states_match, options_fit,
        shapes_match,
    ),
)  # fmt: skip
def legalize(state: Legalizer) -> None:
    """One node whose rows are the steps; sequences of a batch are images, or pixels where time comes first."""
    op = state.signature
    x, y, hidden = require_input(op, 0), op.outputs[0], op.intermediates[4]
    cells = require_input(op, INPUT_WEIGHTS[3]).shape[0]
    exponent = math.frexp(require_input(op, CELL).scale)[1] - 1
    coupled, projected = op.input(INPUT_WEIGHTS[0]) is None, op.input(PROJECTION) is not None
    flags = COUPLED * coupled + PEEPHOLE * (op.input(PEEPHOLES[1]) is not None)
    flags += NORMALIZE * (op.input(NORMS[1]) is not None) + PROJECT * projected
    weights: list[npt.NDArray[np.uint8]] = []
    words: list[npt.NDArray[np.int32]] = []
    for gate in GATES[: 3 if coupled else 4]:
        packed, table = _gate(state, gate, exponent)
        weights += packed
        words.append(table)
    projection = (0, 0)
    # LiteRT adds the zero point to an output, but subtracts it from what is projected: it shows where that saturates.
    hidden_zero = -hidden.zero_point if projected else hidden.zero_point
    if projected:
        matrix = np.asarray(state.constant(PROJECTION), np.int8)
        bias = (
            state.constant(PROJECTION_BIAS).astype(np.int64)
            if state.has(PROJECTION_BIAS)
            else np.zeros(len(matrix), np.int64)
        )
        weights.append(pack_dense(matrix.reshape(len(matrix), 1, -1), state.target.units, state.target.length))
        words.append(_words(fold_zero_point(bias, matrix, hidden_zero)))
        projection = _factor(require_input(op, PROJECTION).scale, hidden.scale, over=y.scale)
    half = f32(f32(2.0**-15 / hidden.scale) * 2.0**-15)
    params = LstmParams(
        cells, flags, *multiplier(half), hidden_zero, *projection, y.zero_point, exponent,
        _clip(op.options.cellClip, require_input(op, CELL).scale, 32767), _clip(op.options.projClip, y.scale, 127),
    )  # fmt: skip
    steps, batch = (x.shape[0], x.shape[1]) if op.options.timeMajor else (x.shape[1], x.shape[0])
    shape = (1, steps, batch) if op.options.timeMajor else (batch, steps, 1)
    source = state.view(state.value(0), (*shape, x.shape[2]), f"{x.name} by steps")
    made = state.graph.add_value(
        Value(y.name, (*shape, y.shape[2]), ElementType.INT8, y.scale, y.zero_point, state.op.outputs[0])
    )
    state.bind(0, state.view(made, shape4(y.shape), y.name, state.op.outputs[0]))
    multiplications = cells * (x.shape[2] + y.shape[2]) * (3 if coupled else 4) + projected * cells * y.shape[2]
    state.emit(
        Node(
            kernel=ABI.name,
            operands=[
                source, np.concatenate(weights), np.concatenate(words).view(np.uint8), state.variable_tensor(HIDDEN),
                state.variable_tensor(CELL), None, made,
            ],
            output=made,
            params=params,
            rounding=Rounding.DOUBLE,
            demand={0: RowDemand()},
            downward=True,
            workspace=9 * cells + 1,
            macs=steps * batch * multiplications,
        )
    )  # fmt: skip
