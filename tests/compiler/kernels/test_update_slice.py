"""update_slice: DYNAMIC_UPDATE_SLICE with constant and run-time positions, at 0 LSB, and as a state that stays in place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.certify.prove import prove
from openneutron.compiler.kernels import update_slice
from openneutron.convert import convert
from openneutron.errors import RuntimeFailure
from openneutron.litert.graph import DType
from openneutron.litert.read import read_model
from openneutron.microcode.decode import decode
from openneutron.microcode.graph_op import blocks_of
from openneutron.microcode.walk import executed_calls
from openneutron.options import Options
from openneutron.run.runner import LiteRtRunner
from tests.caches import Cache
from tests.compiler.kernels.moving import MOVED, Q, fresh, integers, reason
from tests.golden import ModelMaker, seeds
from tests.sampling import examples


@examples(25)
@given(st.data())
def test_any_box(data: st.DataObject) -> None:
    maker = fresh(data.draw(seeds()))
    for _ in range(3):
        shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
        box = [data.draw(st.integers(1, size)) for size in shape]
        places = [data.draw(st.integers(0, size - part)) for size, part in zip(shape, box, strict=True)]
        dtype, kind = data.draw(MOVED), data.draw(st.sampled_from([DType.INT32, DType.INT64]))
        q = (Q[0], 0) if dtype is DType.INT16 else Q
        x, update = maker.input(shape, dtype, *q), maker.input(box, dtype, *q)
        if data.draw(st.booleans()):
            starts = maker.constant(places, kind)
        else:
            starts = maker.builder.tensor(f"starts{x}", (len(shape),), kind)
            maker.inputs.append(starts)
            maker.data.append(np.array(places, kind.numpy))
        maker.op("DYNAMIC_UPDATE_SLICE", [x, update, starts], maker.output(shape, dtype, *q))
    maker.check()


@pytest.mark.parametrize("target", ["imxrt700", "imx95", "mcxn94x"])
@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16])
def test_a_cache_is_updated_in_place(dtype: DType, target: str) -> None:
    source = Cache(dtype).data()
    result = convert(source, Options(target=target))
    assert not [one.reason for one in result.report.operators if one.reason]
    prove(result.model, source)
    reference, compiled = LiteRtRunner(source), LiteRtRunner(result.model)
    assert compiled.neutron_graphs == 1
    graph = read_model(result.model).main
    blocks = blocks_of(graph, graph.operators[0], outputs=2)
    calls = [call for call, *_ in executed_calls(decode(blocks.microcode, verify=False))]
    (update,) = (call for call in calls if call.kernel == update_slice.ABI.id)
    before, after = update.operands[0], update.operands[3]
    assert (before.region, before.offset) == (after.region, after.offset)
    rng = np.random.default_rng(1)
    for position in (0, 1, 5, 2):
        row = rng.integers(-99, 99, Cache.row).astype(dtype.numpy)
        given = [row, np.array([position], np.int32)]
        for name, one in reference.run(given).outputs.items():
            assert np.array_equal(one, compiled.run(given).outputs[name])


@pytest.mark.parametrize("position", [Cache.context, -1, 2**31 - 1, -(2**31)])
def test_a_position_outside_ends_the_run_and_changes_nothing(position: int) -> None:
    runner = LiteRtRunner(convert(Cache().data(), Options()).model)
    row = np.full(Cache.row, 7, np.int8)
    first = runner.run([row, np.array([0], np.int32)]).outputs["scores"]
    with pytest.raises(RuntimeFailure, match=f"index {position}, where 0 to {Cache.context - 1} exist"):
        runner.run([row * 2, np.array([position], np.int32)])
    assert np.array_equal(runner.run([row, np.array([0], np.int32)]).outputs["scores"], first)


def test_a_box_beside_a_reader_of_the_old_contents() -> None:
    maker = fresh(3)
    x, update = maker.input((5, 4), DType.INT8, *Q), maker.input((2, 4), DType.INT8, *Q)
    starts = maker.builder.tensor("starts", (2,), DType.INT32)
    maker.inputs.append(starts)
    maker.data.append(np.array([3, 0], np.int32))
    after = maker.output((5, 4), DType.INT8, *Q)
    maker.op("DYNAMIC_UPDATE_SLICE", [x, update, starts], after)
    maker.op("ADD", [x, after], maker.output((5, 4), DType.INT8, *Q))
    maker.check()


def test_refusals() -> None:
    def updated(maker: ModelMaker, box: tuple[int, ...], start: tuple[int, ...], zero: int = 3) -> None:
        x, update = maker.input((3, 4), DType.INT8, *Q), maker.input(box, DType.INT8, Q[0], zero)
        starts = integers(maker, start)
        maker.op("DYNAMIC_UPDATE_SLICE", [x, update, starts], maker.output((3, 4), DType.INT8, *Q))

    assert "start 2 of 2 in 3 along dimension 0" in reason(lambda m: updated(m, (2, 4), (2, 0)))
    assert "[4, 4] in [3, 4]" in reason(lambda m: updated(m, (4, 4), (0, 0)))
    assert "1 starts for 2 dimensions" in reason(lambda m: updated(m, (1, 4), (0,)))
    assert "insert a QUANTIZE" in reason(lambda m: updated(m, (1, 4), (0, 0), 4))
