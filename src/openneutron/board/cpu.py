"""CPU cost model: estimated cycles of the LiteRT operators that the NPU does not run.

Convolution, depth-wise convolution and linear layers are solved from latencies that NXP's model zoo gives for the Cortex-M33 of
MCX N94x with CMSIS-NN (150 MHz, CPU only); softmax is fitted together with the NPU's constants (`benchmarks/calibrate.py`).
Everything else is assumed from the inner loops. For the Cortex-A55 of i.MX 95 no published figure gives the CPU's share of a
time: all of its costs are assumed.

| model | MACs | published | this model |
|---|---|---|---|
| ResNet-8 | 12,501,632 | 266.7 ms | 266.7 ms |
| DS-CNN | 2,656,768 (288,000 of them depth-wise) | 62 ms | 62.3 ms |
| autoencoder | 264,192 | 5.6 ms | 5.7 ms |

Example:
    >>> cpu_cycles(graph, graph.operators[-1], CORTEX_M)
    2490
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from openneutron.litert.codes import VIEWS
from openneutron.litert.graph import Graph, Operator
from openneutron.machine.targets import Target


class CpuCosts(NamedTuple):
    """Cycles of one engine's kernels on the CPU."""

    mac: float
    depthwise_mac: float
    tap: float
    element: float
    table: float
    exponential: float
    move: float
    call: float


# `mac` and `depthwise_mac` are solved from ResNet-8 and DS-CNN above; the autoencoder checks them. `exponential` is a softmax
# per element: two exponentials in fixed point and a scaling, fitted on models of 1,001 classes. Assumed: `tap` a load and a
# compare; `element` two loads, two fixed-point multiplications and a store; `table` a load, a lookup and a store; `move` one
# byte of a strided copy; `call` the runtime's dispatch of one operator with its argument checks.
CORTEX_M: Final = CpuCosts(3.2, 5.95, 3.0, 20.0, 4.0, 193.0, 4.0, 600.0)
# Portable kernels compute in float without blocking or SIMD (assumed: load, load, multiply-add, index arithmetic).
PORTABLE: Final = CpuCosts(15.0, 20.0, 8.0, 20.0, 60.0, 120.0, 8.0, 800.0)
# Cycles of the runtime's call of a NeutronGraph before its first kernel and after its last (assumed: about 5 µs at 324
# MHz).
DELEGATE_CALL: Final = 1_500

# The same two engines on a Cortex-A55 under Linux, all assumed. XNNPACK: half of the peak of two 16-wide INT8 dot
# products per four cycles; one depth-wise MAC per cycle; element-wise 16 at a time; a call is a dispatch of LiteRT and
# cold caches.
_A55: Final = CpuCosts(0.25, 1.0, 0.5, 2.0, 2.0, 40.0, 1.0, 5_000.0)
# Portable kernels: scalar float, two instructions per cycle.
_A55_PORTABLE: Final = CpuCosts(4.0, 6.0, 3.0, 8.0, 40.0, 80.0, 3.0, 2_000.0)
# The same on a Cortex-M85, all assumed. CMSIS-NN with Helium: eight INT8 products per two cycles, half of it reached; elements
# eight at a time. Portable kernels: two instructions per cycle of the Cortex-M33's.
_M85: Final = CpuCosts(0.5, 1.5, 1.0, 4.0, 2.0, 60.0, 1.5, 600.0)
_M85_PORTABLE: Final = CpuCosts(7.5, 10.0, 4.0, 10.0, 30.0, 60.0, 4.0, 800.0)
_OTHER_CORES: Final[dict[str, dict[CpuCosts, CpuCosts]]] = {
    "cortex_a55": {CORTEX_M: _A55, PORTABLE: _A55_PORTABLE},
    "cortex_m85": {CORTEX_M: _M85, PORTABLE: _M85_PORTABLE},
}
_OTHER_CALLS: Final = {"cortex_a55": 36_000}  # call, interrupt and return: 20 µs at 1.8 GHz (assumed)


def on_core(costs: CpuCosts, target: Target) -> CpuCosts:
    """Return the costs of the same engine, `CORTEX_M` or `PORTABLE`, on the target's CPU.

    Example:
        >>> on_core(PORTABLE, targets.load("imxrt700")) is PORTABLE
        True
    """
    return _OTHER_CORES.get(target.cpu, {}).get(costs, costs)


def delegate_call(target: Target) -> int:
    """Return the CPU cycles of one call of a NeutronGraph."""
    return _OTHER_CALLS.get(target.cpu, DELEGATE_CALL)


_TABLES = frozenset({"LOGISTIC", "TANH", "HARD_SWISH", "EXP", "LOG", "RSQRT", "SQRT", "GELU", "ELU"})
_REDUCTIONS = frozenset({"MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "ARG_MAX", "ARG_MIN"})
_MOVES = frozenset(
    {
        "TRANSPOSE", "CONCATENATION", "SLICE", "STRIDED_SLICE", "SPLIT", "SPLIT_V", "PAD", "PADV2", "MIRROR_PAD", "GATHER",
        "PACK", "UNPACK", "TILE", "SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND",
        "READ_VARIABLE", "ASSIGN_VARIABLE", *VIEWS,
    }
)  # fmt: skip
_FREE = frozenset({"VAR_HANDLE", "CALL_ONCE"})
# Gates of each recurrent layer; input and state are multiplied by the weights of each.
_GATES = {"UNIDIRECTIONAL_SEQUENCE_LSTM": 4, "LSTM": 4, "UNIDIRECTIONAL_SEQUENCE_RNN": 1, "RNN": 1}


def cpu_cycles(graph: Graph, op: Operator, costs: CpuCosts = CORTEX_M) -> int:
    """Return the estimated cycles of one LiteRT operator on the CPU."""
    if op.code in _FREE:
        return 0
    return round(costs.call + _work(graph, op, costs))


def _work(graph: Graph, op: Operator, costs: CpuCosts) -> float:
    if not op.outputs:
        return sum(graph.tensors[t].nbytes for t in op.inputs[1:] if t >= 0) * costs.move
    out = graph.tensors[op.outputs[0]]
    elements = math.prod(out.shape)
    source = graph.tensors[op.inputs[0]] if op.inputs and op.inputs[0] >= 0 else out
    match op.code:
        case "CONV_2D" | "CONV_3D":
            return elements * _per_channel(graph, op) * costs.mac
        case "DEPTHWISE_CONV_2D":
            kernel = _shape(graph, op, 1)
            return elements * kernel[1] * kernel[2] * costs.depthwise_mac
        case "TRANSPOSE_CONV":
            weights, given = _shape(graph, op, 1), _shape(graph, op, 2)
            return math.prod(given) * math.prod(weights[:3]) * costs.mac
        case "FULLY_CONNECTED":
            return elements * _per_channel(graph, op) * costs.mac
        case "BATCH_MATMUL":
            return elements * (source.shape[-1] if source.shape else 1) * costs.mac
        case "SOFTMAX" | "LOG_SOFTMAX":
            return elements * costs.exponential
        case "AVERAGE_POOL_2D" | "MAX_POOL_2D":
            window = getattr(op.options, "filterHeight", 1) * getattr(op.options, "filterWidth", 1)
            return float(elements * window * costs.tap)
        case code if code in _GATES:
            steps = math.prod(source.shape[:-1])
            state = out.shape[-1] if out.shape else 1
            macs = steps * _GATES[code] * state * ((source.shape[-1] if source.shape else 1) + state)
            return macs * costs.mac + steps * state * _GATES[code] * costs.table
        case code if code in _REDUCTIONS:
            return math.prod(source.shape) * costs.tap
        case code if code in _TABLES:
            return elements * costs.table
        case code if code in _MOVES:
            return sum(graph.tensors[t].nbytes for t in op.outputs) * costs.move
    return elements * costs.element


def _per_channel(graph: Graph, op: Operator) -> float:
    """Return the multiply-accumulates per output value."""
    tensor = op.inputs[1] if len(op.inputs) > 1 else -1
    weights = graph.tensors[tensor].shape if tensor >= 0 else ()
    return math.prod(weights) / max(weights[0], 1) if weights else 1.0


def _shape(graph: Graph, op: Operator, position: int) -> tuple[int, ...]:
    """Return an input's shape in four dimensions; operators on the CPU may lack it or have fewer."""
    tensor = op.inputs[position] if position < len(op.inputs) else -1
    shape = tuple(graph.tensors[tensor].shape) if tensor >= 0 else ()
    return (1,) * (4 - len(shape)) + shape
