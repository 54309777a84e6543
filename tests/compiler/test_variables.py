"""Variables on the NPU: exact over many runs, on every target, and left on the CPU with a reason where they cannot be there."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.certify.prove import prove
from openneutron.compiler.variables import variables_of
from openneutron.convert import convert
from openneutron.errors import RuntimeFailure, UnsupportedError
from openneutron.litert import DType, GraphBuilder
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.machine import targets
from openneutron.machine.simulator import Simulator
from openneutron.microcode.graph_op import blocks_of, is_graph_op
from openneutron.options import Options
from openneutron.result import Result
from openneutron.run.runner import LiteRtRunner, random_inputs
from tests.loops import Loop
from tests.streaming import HISTORY, running_sum, streaming_convnet

FRAMES = 50


def _swap() -> bytes:
    """Two variables that change places in every run; the sum of one and the input is returned."""
    g = GraphBuilder()
    x, y = (g.tensor(name, (1, 4), DType.INT8, scale=0.1) for name in ("x", "y"))
    left = g.variable("left", [[1, 2, 3, 4]], DType.INT8)
    right = g.variable("right", [[9, 8, 7, 6]], DType.INT8)
    a, b = (g.tensor(name, (1, 4), DType.INT8, scale=0.1) for name in ("a", "b"))
    g.op("READ_VARIABLE", [left], [a])
    g.op("READ_VARIABLE", [right], [b])
    g.op("ASSIGN_VARIABLE", [left, b], [])
    g.op("ADD", [a, x], [y])
    g.op("ASSIGN_VARIABLE", [right, y], [])
    return write_model(g.finish([x], [y]))


def _read_after_assign() -> bytes:
    """Reading a variable that this run has assigned gives what was assigned."""
    g = GraphBuilder()
    x, y, z = (g.tensor(name, (1, 4), DType.INT8, scale=0.1) for name in "xyz")
    handle = g.variable("v", [[1, 2, 3, 4]], DType.INT8)
    first, second = (g.tensor(name, (1, 4), DType.INT8, scale=0.1) for name in ("first", "second"))
    g.op("READ_VARIABLE", [handle], [first])
    g.op("ASSIGN_VARIABLE", [handle, x], [])
    g.op("READ_VARIABLE", [handle], [second])
    g.op("ADD", [first, x], [y])
    g.op("ADD", [second, first], [z])
    return write_model(g.finish([x], [y, z]))


MODELS = {
    "streaming convolution": streaming_convnet(),
    "other first contents": streaming_convnet(first=3),
    "running sum": running_sum(),
    "first contents that no word repeats": running_sum(first=(1, -2, 3, 4)),
    "swap": _swap(),
    "read after assign": _read_after_assign(),
}


def _blocks(result: Result) -> tuple[bytes, bytes, bytes]:
    graph = read_model(result.model).main
    op = next(op for op in graph.operators if is_graph_op(op))
    found = blocks_of(graph, op, outputs=len(op.outputs))
    return found.microcode, found.weights, found.kernels


@pytest.mark.parametrize("target", targets.geometries())
@pytest.mark.parametrize("name", MODELS)
def test_every_frame_is_litert(name: str, target: str) -> None:
    data = MODELS[name]
    result = convert(data, Options(target=target))
    assert [op.reason for op in result.report.operators if not op.converted] == []
    assert prove(result.model, data).graphs == 1
    reference, compiled = LiteRtRunner(data), LiteRtRunner(result.model)
    for _ in range(2):
        for frame in range(FRAMES):
            inputs = random_inputs(reference.inputs, seed=frame)
            wanted, got = reference.run(inputs).outputs, compiled.run(inputs).outputs
            assert all(np.array_equal(wanted[key], got[key]) for key in wanted), frame
        reference.reset()
        compiled.reset()


def test_the_compiled_file_has_no_variables_left() -> None:
    model = read_model(convert(streaming_convnet(), Options(target="imxrt700")).model)
    assert [op.code for op in model.main.operators] == ["CUSTOM"]
    assert len(model.graphs) == 1


def test_two_handles_have_two_states_and_saved_state_is_restored() -> None:
    blocks = _blocks(convert(running_sum(), Options(target="imxrt700")))
    one, two = Simulator(*blocks), Simulator(*blocks)
    x = [np.full((1, 4), 10, np.int8)]
    first = one.run(x)[0]
    second = one.run(x)[0]
    assert not np.array_equal(first, second)
    assert np.array_equal(two.run(x)[0], first)
    saved = one.state
    third = one.run(x)[0]
    one.state = saved
    assert np.array_equal(one.run(x)[0], third)
    one.reset()
    assert np.array_equal(one.run(x)[0], first)
    with pytest.raises(RuntimeFailure, match="another size"):
        one.state = saved[:-1]


def test_state_counts_as_memory() -> None:
    report = convert(streaming_convnet(), Options(target="imxrt700")).report
    assert report.totals.io_bytes == 4 + 6 + 16  # a frame, the output, eight bytes of history at a multiple of 16


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (streaming_convnet(initial=False), "read before it is set"),
        (streaming_convnet(shape=(1, 2, 2, 2)), "its first contents are int8 [1, 2, 2, 2]"),
        (running_sum(through_cpu=True), "read before and assigned after an operator on the CPU"),
    ],
    ids=["never set", "another shape", "split"],
)
def test_what_stays_on_the_cpu_says_why(data: bytes, reason: str) -> None:
    report = convert(data, Options(target="imxrt700")).report
    reasons = {op.code: op.reason for op in report.operators if not op.converted}
    assert reason in reasons["READ_VARIABLE"]
    assert reason in reasons["ASSIGN_VARIABLE"]


@pytest.mark.parametrize("shape", [(1, 3, 1, 4), (1, 2, 2, 2)])
def test_what_depends_on_a_variable_of_another_shape_stays_with_it(shape: tuple[int, ...]) -> None:
    """LiteRT takes the first contents as they are, and computes with their shape."""
    data = streaming_convnet(shape=shape)
    result = convert(data, Options(target="imxrt700"))
    reasons = {op.code: (op.reason, op.hint) for op in result.report.operators}
    assert "computed from variable 'history'" in reasons["CONV_2D"][0]
    assert all("one shape" in reasons[code][1] for code in ("CONV_2D", "READ_VARIABLE"))
    assert result.report.totals.neutron_graphs == 0
    if shape == (1, 3, 1, 4):
        frame = [np.ones((1, 1, 1, 4), np.int8)]
        wanted, got = (LiteRtRunner(model).run(frame).outputs["out"] for model in (data, result.model))
        assert np.array_equal(wanted, got)


def test_a_variable_that_a_loop_names_stays_on_the_cpu() -> None:
    def read(g: GraphBuilder, h: int) -> int:
        handle, made = g.tensor("handle", (), DType.RESOURCE), g.tensor("read", (1, 12), DType.INT8, 1 / 128, 0)
        g.op("VAR_HANDLE", [], [handle], container="", shared_name="v")
        g.op("READ_VARIABLE", [handle], [made])
        return made

    g = GraphBuilder()
    loop = Loop(extra=read).model()
    g.graph, g.called = loop.main, loop.graphs[1:]
    inputs, outputs = list(g.graph.inputs), list(g.graph.outputs)
    handle = g.variable("v", np.full((1, 12), 7), DType.INT8)
    before, total = (g.tensor(name, (1, 12), DType.INT8, 1 / 128, 0) for name in ("before", "total"))
    g.op("READ_VARIABLE", [handle], [before])
    g.op("ADD", [before, before], [total])
    data = write_model(g.finish(inputs, [*outputs, total]))
    result = convert(data, Options())
    reasons = {op.code: op.reason for op in result.report.operators}
    assert "variable 'v' is named in graph 'body' too" in reasons["READ_VARIABLE"]
    assert result.report.totals.neutron_graphs == 1  # the addition
    with pytest.raises(UnsupportedError, match="named in graph 'body' too"):
        LiteRtRunner(result.model)


def test_variables_on_the_cpu_around_a_neutron_graph_keep_their_contents() -> None:
    data = running_sum(through_cpu=True)
    reference, compiled = LiteRtRunner(data), LiteRtRunner(convert(data, Options(target="imxrt700")).model)
    assert compiled.neutron_graphs == 1
    for frame in range(8):
        inputs = random_inputs(reference.inputs, seed=frame)
        assert np.array_equal(reference.run(inputs).outputs["total"], compiled.run(inputs).outputs["total"])


def test_first_contents_are_found() -> None:
    found = variables_of(read_model(streaming_convnet(first=3))).by_name[HISTORY]
    assert found.initial is not None and (found.initial == 3).all()
    assert len(found.reads) == len(found.assigns) == 1
