"""What LiteRT does with a stranger's model, it does in a process of its own: there it may crash, loop or take all memory."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import openneutron as on
from openneutron.cli.main import run
from openneutron.errors import RuntimeFailure
from openneutron.litert import DType, GraphBuilder, write_model
from openneutron.run.runner import LiteRtRunner, random_inputs
from tests import tiny
from tests.streaming import streaming_convnet


def finished(main: GraphBuilder, x: int, y: int, npu: bool) -> bytes:
    """The model; with `npu`, beside an operator that runs there, because `verify` wants one."""
    inputs, outputs = [x], [y]
    if npu:
        inputs.append(main.tensor("beside", (1, 4), DType.INT8, scale=0.1, zero_point=0))
        outputs.append(main.tensor("table", (1, 4), DType.INT8, scale=1 / 128, zero_point=0))
        main.op("TANH", inputs[1:], outputs[1:])
    return write_model(main.finish(inputs, outputs))


def forever(npu: bool = False) -> bytes:
    """WHILE x == x."""

    def scalar(g: GraphBuilder, name: str, dtype: DType = DType.INT32) -> int:
        return g.tensor(name, (1,), dtype)

    condition, body, main = GraphBuilder(), GraphBuilder(), GraphBuilder()
    c, d = scalar(condition, "c"), scalar(condition, "d", DType.BOOL)
    condition.op("EQUAL", [c, c], [d])
    b, e = scalar(body, "b"), scalar(body, "e")
    body.op("ADD", [b, b], [e])
    main.called += [condition.finish([c], [d]).main, body.finish([b], [e]).main]
    x, y = scalar(main, "x"), scalar(main, "y")
    main.op("WHILE", [x], [y], cond_subgraph_index=1, body_subgraph_index=2)
    return finished(main, x, y, npu)


def crashing(npu: bool = False) -> bytes:
    """An addition on which LiteRT's kernel aborts, hidden behind IF."""
    hidden, main = GraphBuilder(), GraphBuilder()
    a = hidden.tensor("a", (1, 4), DType.INT8, scale=0.1, zero_point=0)
    b = hidden.tensor("b", (1, 4), DType.INT8, scale=1e-9, zero_point=0)
    hidden.op("ADD", [a, a], [b])
    main.called.append(hidden.finish([a], [b]).main)
    yes = main.tensor("yes", (1,), DType.BOOL, data=np.array([True]))
    x, y = (main.tensor(name, (1, 4), DType.INT8, scale=0.1, zero_point=0) for name in "xy")
    main.op("IF", [yes, x], [y], then_subgraph_index=1, else_subgraph_index=1)
    return finished(main, x, y, npu)


def greedy() -> bytes:
    """A hundred bytes of input become eight gigabytes."""
    g = GraphBuilder()
    x, y = g.tensor("x", (1, 4), DType.FLOAT32), g.tensor("y", (1 << 29, 4), DType.FLOAT32)
    shape = g.tensor("shape", (2,), DType.INT32, data=np.array([1 << 29, 4], np.int32))
    g.op("BROADCAST_TO", [x, shape], [y])
    return write_model(g.finish([x], [y]))


HOSTILE = {
    "loops": (forever, np.int32, (1,), "took more than 1 seconds and was stopped"),
    "crashes": (crashing, np.int8, (1, 4), r"LiteRT's process crashed \(SIG"),
    "takes memory": (greedy, np.float32, (1, 4), "OPENNEUTRON_MEMORY=0 lifts the limit"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_is_a_sentence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, dtype, shape, sentence = HOSTILE[name]
    monkeypatch.setenv("OPENNEUTRON_TIMEOUT", "1" if name == "loops" else "600")
    with pytest.raises(RuntimeFailure, match=f"m.tflite: .*{sentence}"):
        LiteRtRunner(make(), source="m.tflite").run([np.ones(shape, dtype)])


def test_the_next_model_runs() -> None:
    """A crash takes nothing with it but the state of models that shared the process, and that is said."""
    plain, stateful = LiteRtRunner(tiny.sandwich()), LiteRtRunner(streaming_convnet())
    inputs = {runner: random_inputs(runner.inputs, seed=0) for runner in (plain, stateful)}
    first, _ = plain.run(inputs[plain]).outputs, stateful.run(inputs[stateful])
    with pytest.raises(RuntimeFailure, match="crashed"):
        LiteRtRunner(crashing()).run([np.ones((1, 4), np.int8)])
    again = plain.run(inputs[plain]).outputs
    assert all(np.array_equal(first[name], again[name]) for name in first)
    with pytest.raises(RuntimeFailure, match="the model's state with it"):
        stateful.run(inputs[stateful])
    stateful.reset()
    stateful.run(inputs[stateful])


@pytest.mark.parametrize("verb", ["run", "verify"])
def test_on_the_command_line(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = dict(os.environ)
    for make, sentence in ((forever, "took more than 1 seconds"), (crashing, "crashed (SIGABRT)")):
        file = tmp_path / "m.tflite"
        file.write_bytes(make(npu=verb == "verify"))
        assert run([verb, str(file), "--timeout", "1" if make is forever else "600"]) == 2
        shown = capsys.readouterr()
        assert sentence in shown.err and shown.err.count("\n") == 1
    assert dict(os.environ) == before


def test_a_program() -> None:
    with pytest.raises(RuntimeFailure, match="crashed"):
        on.compile(crashing()).run(np.ones((1, 4), np.int8))
