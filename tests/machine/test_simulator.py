"""The simulator's binding: exact, guarded, timed as predicted, and clear about what it refuses."""

from __future__ import annotations

import itertools
import struct
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from openneutron.convert import convert
from openneutron.errors import OpenNeutronError, OptionError, RuntimeFailure
from openneutron.litert.read import read_model
from openneutron.machine import driver, pricing, targets
from openneutron.machine import simulator as sim
from openneutron.machine.simulator import Event, Simulator
from openneutron.microcode.decode import decode
from openneutron.microcode.encode import encode_call
from openneutron.microcode.graph_op import Compiled, blocks_of, is_graph_op
from openneutron.microcode.instructions import Call
from openneutron.microcode.table import ElementType
from openneutron.options import Options
from tests import tiny
from tests.golden import reference

TARGETS = ("imxrt700", "mcxn94x", "imx95")


def compiled(target: str = "imxrt700", **options: Any) -> tuple[Compiled, int]:
    """Blocks of the tiny network, and the cycles predicted for it."""
    result = convert(tiny.convnet(), Options(target=target, **options))
    graph = read_model(result.model).main
    (op,) = graph.operators
    assert is_graph_op(op)
    return blocks_of(graph, op, outputs=1), result.report.totals.cycles


def simulator(blocks: Compiled, **options: Any) -> Simulator:
    return Simulator(blocks.microcode, blocks.weights, blocks.kernels, **options)


def image(seed: int = 0) -> np.ndarray[Any, np.dtype[np.int8]]:
    return np.random.default_rng(seed).integers(-128, 128, (1, 8, 8, 3)).astype(np.int8)


@pytest.mark.parametrize("target", TARGETS)
def test_exact_and_timed_as_predicted(target: str) -> None:
    blocks, predicted = compiled(target)
    with simulator(blocks, poison=True) as s:
        for seed in range(3):
            (expected,) = reference(tiny.convnet(), [image(seed)])
            (found,), events = s.run_with_events([image(seed)])
            assert found.dtype == expected.dtype and found.shape == expected.shape
            assert np.array_equal(found, expected)
            assert s.cycles == predicted == max(event.end for event in events)


def test_constants_fetched_to_sram_cost_what_was_predicted() -> None:
    blocks, predicted = compiled(fetch_constants_to_sram=True)
    with simulator(blocks, poison=True) as s:
        (found,), events = s.run_with_events([image()])
        assert s.info.prefetch_bytes > 0
        assert np.array_equal(found, reference(tiny.convnet(), [image()])[0])
        copies = [event for event in events if event.kernel == ""]
        assert copies and s.cycles == predicted


def test_info_and_tensors() -> None:
    blocks, _ = compiled()
    with simulator(blocks) as s:
        assert s.info.target == "imxrt700" and s.info.format_version == 1 and not s.info.profiling
        assert [t.name for t in s.tensors] == ["input 0", "output 0"]
        assert s.inputs[0].shape == (1, 8, 8, 3) and s.inputs[0].dtype is ElementType.INT8
        assert s.inputs[0].scale == 1 / 128 and s.outputs[0].zero_point == -128


def test_events_follow_each_other_on_the_array() -> None:
    blocks, _ = compiled()
    with simulator(blocks) as s:
        _, events = s.run_with_events([image()])
    assert {event.kernel for event in events} >= {"conv2d", "softmax"}
    for before, after in itertools.pairwise(events):
        assert after.start == before.end
    assert all(event.end - event.start == pricing.cycles_of(event.cost) and event.rows > 0 for event in events)


def test_profile_records() -> None:
    blocks, _ = compiled(use_profiling=True)
    with simulator(blocks) as s:
        _, events = s.run_with_events([image()])
        assert s.info.profiling and s.info.profile_bytes == 16 * s.info.calls
        records = [struct.unpack_from("<4BI4BI", s.profile, at) for at in range(0, len(s.profile), 16)]
    kernels = [record for record in records if record[6] == 6]
    assert [(record[4], record[9]) for record in kernels] == [(event.start, event.end) for event in events]


def test_simulators_on_several_threads() -> None:
    blocks, _ = compiled()

    def scores(seed: int) -> bytes:
        with simulator(blocks) as s:
            return s.run([image(seed)])[0].tobytes()

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(scores, range(8)))
    assert found == [scores(seed) for seed in range(8)]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "takes 1 inputs, 0 were given"),
        ([image().astype(np.uint8)], "input 0 is uint8"),
        ([image()[0]], r"input 0 is int8 \(8, 8, 3\), the model takes int8 \(1, 8, 8, 3\)"),
    ],
)
def test_wrong_inputs(inputs: list[Any], message: str) -> None:
    blocks, _ = compiled()
    with simulator(blocks) as s, pytest.raises(OptionError, match=message):
        s.run(inputs)


def _changed(data: bytes, offset: int, value: int) -> bytes:
    return data[:offset] + bytes([value]) + data[offset + 1 :]


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("CHECKSUM", lambda b: (b.microcode, _changed(b.weights, 3, b.weights[3] ^ 1), b.kernels)),
        ("MAGIC", lambda b: (_changed(b.microcode, 0, 0), b.weights, b.kernels)),
        ("OTHER_CONVERTER", lambda b: (_changed(b.microcode, 4, 7), b.weights, b.kernels)),
        ("TRUNCATED", lambda b: (b.microcode[:64], b.weights, b.kernels)),
        ("TRUNCATED", lambda b: (b.microcode, b.weights[:-16], b.kernels)),
    ],
)
def test_damaged_blocks_are_named(name: str, damage: Any) -> None:
    blocks, _ = compiled()
    with pytest.raises(RuntimeFailure) as caught:
        Simulator(*damage(blocks), where="model.pte")
    words = {code: word for code, word, _ in sim.errors()}
    assert words[caught.value.code] == name
    assert str(caught.value).startswith("model.pte: ") and "(" in caught.value.message


def test_stray_writes_are_seen() -> None:
    blocks, _ = compiled()

    def stray(event: Event) -> None:
        s._outputs[0]._after[0] = 0

    s = simulator(blocks)
    with s, pytest.raises(RuntimeFailure, match="wrote outside output 0 of 5 bytes"):
        s.run_watched([image()], stray)


def test_closed_simulator() -> None:
    blocks, _ = compiled()
    s = simulator(blocks)
    s.close()
    s.close()
    with pytest.raises(RuntimeFailure, match="closed"):
        s.run([image()])
    with pytest.raises(RuntimeFailure, match="closed"):
        _ = s.cycles


def test_cost_of_an_encoded_call() -> None:
    blocks, _ = compiled()
    program = decode(blocks.microcode, blocks.weights, blocks.kernels)
    calls = [item for item in program.instructions if isinstance(item, Call)]
    softmax = encode_call(calls[-1])
    # One vector of five: three walks of one step, one row, one call.
    c = targets.load("imxrt700").cost
    assert pricing.call_cost("imxrt700", softmax, 0, 1) == (3 * c.lane, 0, c.row + c.call)
    assert pricing.call_cost("imxrt700", softmax, 0, 0) == (0, 0, 0)
    assert pricing.dma_cost("imxrt700", 100) == (0, 100 * c.dma_byte, c.dma_start)
    assert pricing.cycles_of(sim.Cost(1024, 0, 1)) == 2
    priced = pricing.cycles_of(pricing.call_cost("imxrt700", softmax, 0, 1))
    assert pricing.call_cycles("imxrt700", softmax, 0, 1) == priced > 0
    with pytest.raises(OptionError, match="no machine model for target 'imxrt701'"):
        pricing.call_cost("imxrt701", softmax, 0, 1)
    with pytest.raises(RuntimeFailure, match="instruction is malformed"):
        pricing.call_cost("imxrt700", softmax[:-4], 0, 1)


@pytest.mark.parametrize("name", TARGETS)
def test_machine_with_constants_of_ones_own(name: str) -> None:
    blocks, _ = compiled(target=name)
    target = targets.load(name)
    program = decode(blocks.microcode, blocks.weights, blocks.kernels)
    calls = [encode_call(item) for item in program.instructions if isinstance(item, Call)]
    same, dearer = pricing.Machine(target), pricing.Machine(replace(target, cost=replace(target.cost, call=1 << 30)))
    assert calls
    for words in calls:
        cost = pricing.call_cost(name, words, 0, 1)
        assert pricing.call_cost(same, words, 0, 1) == cost
        assert pricing.call_cost(dearer, words, 0, 1).overhead == cost.overhead - target.cost.call + (1 << 30)
    assert pricing.dma_cost(same, 77) == pricing.dma_cost(name, 77)


def test_every_error_has_a_name_and_a_sentence() -> None:
    listed = sim.errors()
    assert listed[0] == (0, "NONE", "no error") and len(listed) > 30
    assert len({code for code, _, _ in listed}) == len({name for _, name, _ in listed}) == len(listed)
    assert all(name.isupper() and len(sentence.split()) >= 2 for _, name, sentence in listed)


def test_library_named_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "lib.so").write_bytes(b"not a library")
    monkeypatch.setenv(driver.LIBRARY_VARIABLE, str(tmp_path / "lib.so"))
    with pytest.raises(OpenNeutronError, match=r"cannot be used.*unset OPENNEUTRON_LIBRARY"):
        driver.library.__wrapped__()
