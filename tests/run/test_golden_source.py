"""Every operator's golden has a name, and every exception its reason."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.litert import DType, GraphBuilder
from openneutron.litert.graph import Graph
from openneutron.litert.write import write_model
from openneutron.run.golden_source import golden_source
from openneutron.run.runner import LiteRtRunner
from tests.golden import ModelMaker


def _unary(code: str, dtype: DType = DType.INT8) -> Graph:
    g = GraphBuilder()
    x, y = (g.tensor(name, (1, 4), dtype, scale=0.1, zero_point=0) for name in "xy")
    g.op(code, [x], [y])
    return g.finish([x], [y]).main


@pytest.mark.parametrize(("code", "engine"), [("ELU", "default"), ("TANH", "reference"), ("EXP", "reference")])
def test_unary_operators(code: str, engine: str) -> None:
    graph = _unary(code)
    found = golden_source(graph, graph.operators[0])
    assert found.engine == engine
    assert bool(found.exception) is (engine != "reference")
    assert found.name in (found.exception or found.name)


REDUCTIONS = {"SUM": np.sum, "MEAN": np.mean, "REDUCE_MAX": np.max, "REDUCE_MIN": np.min}
SHAPES = {
    "rows": ((2, 5, 3, 16), (1,)),
    "image": ((2, 3, 4, 5), (1, 2)),
    "row": ((4, 300), (1,)),
    "ends": ((3, 4, 5), (0, 2)),
}


@pytest.mark.parametrize("ratio", [1.0, 0.3, 0.004])
@pytest.mark.parametrize(("shape", "axes"), SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("dtype", [DType.INT16, DType.INT8, DType.UINT8])
@pytest.mark.parametrize("code", REDUCTIONS)
def test_reductions_are_those_of_exact_arithmetic(
    code: str, dtype: DType, shape: tuple[int, ...], axes: tuple[int, ...], ratio: float
) -> None:
    """One step is allowed, for rounding: a kernel that reads its values as another type is off by hundreds."""
    maker = ModelMaker(np.random.default_rng(0))
    zero = 0 if dtype is DType.INT16 else 3
    ratio = 1.0 if code.startswith("REDUCE") else ratio
    x = maker.input(shape, dtype, 0.25 * ratio, zero)
    kept = [1 if axis in axes else size for axis, size in enumerate(shape)]
    maker.op(
        code, [x, maker.constant(np.array(axes), DType.INT32)], maker.output(kept, dtype, 0.25, zero), keep_dims=True
    )
    runner = LiteRtRunner(write_model(maker.model()))
    (found,) = runner(*maker.data)
    real = REDUCTIONS[code](maker.data[0].astype(np.float64) - zero, axis=axes, keepdims=True) * ratio + zero
    limits = np.iinfo(dtype.numpy)
    assert np.abs(found - np.clip(np.rint(real), limits.min, limits.max)).max() <= 1
    assert any("default kernel" in note for note in runner.notes) is (code == "SUM" and dtype is not DType.UINT8)
