"""Equal steps become one loop: exact, proved, and as small for 250 steps as for 25."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.certify.prove import prove
from openneutron.convert import convert
from openneutron.litert import DType, GraphBuilder, write_model
from openneutron.machine import targets
from openneutron.options import Options
from openneutron.run.runner import LiteRtRunner, random_inputs
from tests.recurrent import both_ways, gru, lstm

FORMS = {
    "last state": gru(6),
    "sequence": gru(6, sequence=True),
    "backwards": gru(6, backwards=True),
    "sequence backwards": gru(6, sequence=True, backwards=True),
    "16 bits": gru(6, wide=True),
    "16 bits, sequence backwards": gru(5, sequence=True, backwards=True, wide=True),
    "batch": gru(5, batch=2),
    "sequence of a batch": gru(5, batch=2, sequence=True),
    "batch first": gru(5, batch=2, batch_first=True),
    "16 bits, batch first, backwards": gru(5, batch=3, batch_first=True, backwards=True, wide=True),
    "taken apart before": gru(5, apart=True),
    "batch first, taken apart before, sequence": gru(5, batch=2, batch_first=True, apart=True, sequence=True),
    "from zeros": gru(6, zeros=True),
    "sequence from zeros, 16 bits": gru(5, sequence=True, zeros=True, wide=True),
    "LSTM": lstm(6),
    "LSTM, sequence of a batch": lstm(5, batch=2, sequence=True),
    "LSTM, 16 bits": lstm(5, wide=True, sequence=True),
}


@pytest.mark.parametrize("target", targets.geometries())
@pytest.mark.parametrize("name", FORMS)
def test_rolled_steps_are_litert(name: str, target: str) -> None:
    data = FORMS[name]
    result = convert(data, Options(target=target))
    assert result.report.passes["roll_steps"] == 1
    assert prove(result.model, data).calls > 5 * 9
    reference, compiled = LiteRtRunner(data), LiteRtRunner(result.model)
    for seed in range(3):
        inputs = random_inputs(reference.inputs, seed=seed)
        wanted, got = reference.run(inputs).outputs, compiled.run(inputs).outputs
        assert all(np.array_equal(wanted[key], got[key]) for key in wanted)


@pytest.mark.parametrize("target", targets.geometries())
def test_both_directions_are_stacked_by_a_loop_each(target: str) -> None:
    data = both_ways(5)
    result = convert(data, Options(target=target))
    assert (result.report.passes["roll_steps"], result.report.passes["roll_copies"]) == (2, 2)
    reference, compiled = LiteRtRunner(data), LiteRtRunner(result.model)
    inputs = random_inputs(reference.inputs, seed=1)
    wanted, got = reference.run(inputs).outputs, compiled.run(inputs).outputs
    assert all(np.array_equal(wanted[key], got[key]) for key in wanted) and prove(result.model, data).calls > 5 * 18


def test_a_loop_holds_one_row_of_what_only_it_reads() -> None:
    rolled = convert(gru(25), Options(target="imxrt700")).report
    loop = [kernel for kernel in rolled.kernels if "25 equal steps as one" in kernel.notes]
    assert len(loop) == 9 and all(kernel.calls == 25 for kernel in loop)
    assert rolled.totals.scratch_bytes < 2 * 25 * 36 + 25 * 12  # the gates of all steps and the states, and little more


@pytest.mark.parametrize("sequence", [False, True])
def test_a_first_state_of_two_constants_is_one_and_all_steps_are_rolled(sequence: bool) -> None:
    """As PyTorch's layers come: each reader of the first state has zeros of its own."""
    report = convert(gru(25, sequence=sequence, zeros=True), Options(target="imxrt700")).report
    assert {kernel.calls for kernel in report.kernels if kernel.notes} == {25}
    assert sum(kernel.calls == 1 for kernel in report.kernels) == (2 if sequence else 3)


def test_switched_off_every_step_stays() -> None:
    report = convert(gru(6), Options(target="imxrt700", passes_off=("roll_steps",))).report
    assert len(report.kernels) > 6 * 9


def repeated() -> bytes:
    """WHILE the counter is below a limit that is only known at run time: x = x + x; then once more."""
    condition, body, main = GraphBuilder(), GraphBuilder(), GraphBuilder()

    def made(g: GraphBuilder, names: str) -> list[int]:
        """Counters and limits are single numbers, the others what is computed with."""
        return [
            g.tensor(name, (1,), DType.INT32) if name in "inlm" else g.tensor(name, (1, 8), DType.INT8, 0.1, 0)
            for name in names
        ]

    i, limit, x = made(condition, "ilx")
    below = condition.tensor("below", (1,), DType.BOOL)
    condition.op("LESS", [i, limit], [below])
    called = [condition.finish([i, limit, x], [below]).main]
    i, limit, x, n, y = made(body, "ilxny")
    body.op("ADD", [i, body.tensor("one", (1,), DType.INT32, data=[1])], [n])
    body.op("ADD", [x, x], [y])
    called.append(body.finish([i, limit, x], [n, limit, y]).main)
    main.called += called
    i, limit, x, n, m, y, z = made(main, "ilxnmyz")
    main.op("WHILE", [i, limit, x], [n, m, y], cond_subgraph_index=1, body_subgraph_index=2)
    main.op("ADD", [y, y], [z])
    return write_model(main.finish([i, limit, x], [z]))


def test_a_loop_of_unknown_length_stays_on_the_cpu_and_says_what_to_do() -> None:
    data = repeated()
    result = convert(data, Options(target="imxrt700"))
    (left,) = [op for op in result.report.operators if not op.converted]
    assert left.code == "WHILE" and "not constant" in left.reason and "unroll" in left.hint
    inputs = [np.array([0], np.int32), np.array([3], np.int32), np.arange(-4, 4, dtype=np.int8)[None]]
    wanted, got = (LiteRtRunner(model).run(inputs).outputs["z"] for model in (data, result.model))
    assert np.array_equal(wanted, got) and wanted[0, 0] == -64


def summed_rows() -> bytes:
    """Four rows picked apart, each seen in another shape, and added up: what `sum(torch.unbind(x, 1))` becomes."""
    g = GraphBuilder()
    x = g.tensor("x", (1, 4, 5, 8), DType.INT8, 0.1, 3)
    rows = []
    for at in range(4):
        begin, size = ([0, at, 0, 0], [1, 1, 5, 8])
        ends = [g.tensor(f"{name}{at}", (4,), DType.INT32, data=data) for name, data in (("b", begin), ("s", size))]
        row = g.tensor(f"row{at}", (1, 1, 5, 8), DType.INT8, 0.1, 3)
        g.op("SLICE", [x, *ends], [row])
        rows.append(g.tensor(f"seen{at}", (1, 5, 8), DType.INT8, 0.1, 3))
        shape = g.tensor(f"shape{at}", (3,), DType.INT32, data=[1, 5, 8])
        g.op("RESHAPE", [row, shape], [rows[-1]], new_shape=[1, 5, 8])
    total = rows[0]
    for at, row in enumerate(rows[1:]):
        added = g.tensor(f"sum{at}", (1, 5, 8), DType.INT8, 0.2 + 0.1 * at, 0)
        g.op("ADD", [total, row], [added])
        total = added
    return write_model(g.finish([x], [total]))


def test_rows_that_are_picked_apart_are_there_for_those_who_read_them_later() -> None:
    data = summed_rows()
    result = convert(data, Options(target="imxrt700"))
    assert result.report.passes["roll_copies"] == 0
    reference, compiled = LiteRtRunner(data), LiteRtRunner(result.model)
    inputs = random_inputs(reference.inputs, seed=0)
    wanted, got = reference.run(inputs).outputs, compiled.run(inputs).outputs
    assert all(np.array_equal(wanted[key], got[key]) for key in wanted)
