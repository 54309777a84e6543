"""views: RESHAPE, SQUEEZE and EXPAND_DIMS cost no call inside a graph, and one copy at its border."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openneutron.compiler.front.legalize import legalize
from openneutron.litert.graph import DType
from openneutron.machine import targets
from tests.compiler.kernels.moving import Q, add_move, fresh, integers, reason, shapes
from tests.golden import ModelMaker
from tests.sampling import examples


def negated(maker: ModelMaker, shape: tuple[int, ...]) -> int:
    """A computed tensor, so that a view behind it is no copy of an input."""
    x = maker.input(shape, DType.INT8, 0.1, 0)
    y = maker.builder.tensor(f"neg{x}", shape, DType.INT8, 0.1, 0)
    maker.op("NEG", [x], y)
    return y


@examples(30)
@given(shapes(1, 5), shapes(1, 5), st.integers(0, 99))
def test_reshape_between_operators(first: list[int], second: list[int], seed: int) -> None:
    size = int(np.lcm(np.prod(first), np.prod(second)))
    before, after = (size // int(np.prod(first)), *first), (*second, size // int(np.prod(second)))
    maker = fresh(seed)
    y = maker.builder.tensor("reshaped", after, DType.INT8, 0.1, 0)
    maker.op("RESHAPE", [negated(maker, before), integers(maker, after)], y, new_shape=list(after))
    maker.op("NEG", [y], maker.output(after, DType.INT8, 0.1, 0))
    maker.check()


def test_no_kernel_runs() -> None:
    maker = fresh()
    y = maker.output((4, 6), DType.INT8, 0.1, 0)
    maker.op("RESHAPE", [negated(maker, (2, 12)), integers(maker, [4, 6])], y, new_shape=[4, 6])
    graph = legalize(maker.model().main, targets.load("imxrt700"))
    assert [node.kernel for node in graph.nodes] == ["lut"]
    maker.check()


def test_every_view_of_inputs_outputs_and_constants() -> None:
    maker = fresh()
    one = negated(maker, (1, 3, 1, 4))
    maker.op("SQUEEZE", [one], maker.output((3, 4), DType.INT8, 0.1, 0), squeeze_dims=[0, 2])
    maker.op("EXPAND_DIMS", [one, integers(maker, 0)], maker.output((1, 1, 3, 1, 4), DType.INT8, 0.1, 0))
    add_move(maker, "SQUEEZE", (1, 2, 1), (2,))  # a view of a graph input as graph output
    table = maker.constant(maker.values((2, 6), DType.INT8), DType.INT8, *Q)
    flat = maker.builder.tensor("flat", (12,), DType.INT8, *Q)
    maker.op("RESHAPE", [table, integers(maker, [12])], flat, new_shape=[12])
    maker.op("MAXIMUM", [flat, maker.input((12,), DType.INT8, *Q)], maker.output((12,), DType.INT8, *Q))
    maker.check()


def test_differing_parameters() -> None:
    maker = fresh()
    x = negated(maker, (1, 4))
    maker.op("RESHAPE", [x, integers(maker, [4])], maker.output((4,), DType.INT8, 0.3, 7), new_shape=[4])
    maker.check()

    def expanded(maker: ModelMaker) -> None:
        x = maker.input((4,), DType.INT8, 0.1, 0)
        maker.op("EXPAND_DIMS", [x, integers(maker, 0)], maker.output((1, 4), DType.INT8, 0.3, 0))

    assert "keeps scale and zero point" in reason(expanded)


def test_other_types_stay_on_the_cpu() -> None:
    def squeezed(maker: ModelMaker) -> None:
        x, y = (maker.builder.tensor(name, shape, DType.FLOAT32) for name, shape in (("x", (1, 4)), ("y", (4,))))
        maker.inputs.append(x)
        maker.outputs.append(y)
        maker.op("SQUEEZE", [x], y)

    assert "float32" in reason(squeezed)
