"""Copies of a model: samples in blocks, fewer copies where memory ends, nothing behind a sample that fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from openneutron.convert import convert
from openneutron.errors import OptionError, RuntimeFailure
from openneutron.litert.read import read_model
from openneutron.machine import batch
from openneutron.machine.batch import Block, Copies, rows_of
from openneutron.machine.simulator import Simulator
from openneutron.microcode.graph_op import blocks_of
from openneutron.options import Options
from openneutron.run.runner import LiteRtRunner
from tests.tiny import convnet

MANY = 50


@pytest.fixture(scope="module")
def compiled() -> bytes:
    return convert(convnet(), Options()).model


@pytest.fixture(scope="module")
def images(compiled: bytes) -> Any:
    (tensor,) = LiteRtRunner(compiled).inputs
    return np.random.default_rng(0).integers(-128, 128, (MANY, *tensor.shape)).astype(tensor.dtype.numpy)


def _copies(compiled: bytes) -> Copies:
    graph = read_model(compiled).main
    blocks = blocks_of(graph, graph.operators[0], outputs=len(graph.operators[0].outputs) - 1)
    return Copies(lambda: Simulator(blocks.microcode, blocks.weights, blocks.kernels, threads=1))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_model_of_one_graph_gives_the_bytes_of_one_by_one(compiled: bytes, images: Any, threads: int) -> None:
    runner = LiteRtRunner(compiled)
    expected = [runner(image)[0] for image in images]
    room = np.empty(images[3].nbytes + 1, np.int8)[1:].reshape(images[3].shape)
    room[...] = images[3]
    samples = [(image,) for image in images]
    samples[3] = (room,)  # not aligned
    samples[4] = ({runner.inputs[0].name: images[4]},)  # type: ignore[assignment]
    found = runner.many(samples, threads=threads)
    assert [one[0].tobytes() for one in found] == [one.tobytes() for one in expected]
    assert all(
        one.shape == other.shape and one.dtype == other.dtype for (one,), other in zip(found, expected, strict=True)
    )
    found[0][0][...] = 1  # outputs are the caller's
    assert found[1][0].tobytes() == expected[1].tobytes()
    samples[7] = (images[7][..., :1],)
    with pytest.raises(OptionError, match="input"):
        runner.many(samples, threads=threads)


def test_other_models_run_one_by_one() -> None:
    assert LiteRtRunner(convnet()).many([(None,)] * MANY, threads=2) == []


def test_blocks_grow_and_shrink_with_their_time(compiled: bytes, images: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(batch, "FIRST", 3)
    monkeypatch.setattr(batch, "run_each", lambda simulators, inputs, outputs: len(inputs))

    def block(some: Any) -> Block[Any]:
        sizes.append(len(some))
        return Block(np.empty(len(some)), np.empty(0), lambda done: list(some[:done]))

    for seconds, expected in ((1e9, [6, 24, 20]), (0.0, [6, *[2] * 22])):
        monkeypatch.setattr(batch, "SECONDS", seconds)
        sizes.clear()
        copies = _copies(compiled)
        assert len(copies.run(list(images), block, threads=2)) == MANY
        assert sizes == [size for size in expected if size]


def test_nothing_behind_a_sample_that_fails(compiled: bytes, images: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "run_each", lambda simulators, inputs, outputs: 5)
    block = Block(np.empty(0), np.empty(0), lambda done: list(range(done)))
    assert _copies(compiled).run(list(images), lambda some: block, threads=2) == [0, 1, 2, 3, 4]


def test_without_memory_for_another_copy_there_are_fewer(compiled: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    copies = _copies(compiled)
    assert len(copies.first(2)) == 2
    monkeypatch.setenv("OPENNEUTRON_MEMORY", "1")
    assert len(copies.first(4)) == 2 and len(copies.first(1)) == 1
    with pytest.raises(RuntimeFailure):
        _copies(compiled).first(1)


def test_rows_lie_apart() -> None:
    assert rows_of([4096, 0], [64, 16], 3).tolist() == [[4096, 0], [4160, 16], [4224, 32]]
