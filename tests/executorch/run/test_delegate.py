"""The C++ delegate inside the stock runtime: layouts, arguments, refusals, profiling."""

from __future__ import annotations

import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch import Tensor

from openneutron.errors import RuntimeFailure
from openneutron.executorch.run.runtime import LoadedProgram
from openneutron.machine import targets
from openneutron.microcode.table import VERSION_WORD
from tests.executorch.delegates import compiled, payload_of, pool, pool_model, program_of, random_int8

CHANNELS_LAST = torch.channels_last
CODE_AT = 16  # where the microcode starts behind a header of one input and one output


def load(
    payloads: list[bytes], inputs: list[Tensor], outputs: list[list[Tensor]], etdump: bool = False
) -> LoadedProgram:
    """Straight into the runtime: the checks of `load_program` would refuse a bad payload before the delegate does."""
    return LoadedProgram(program_of(payloads, inputs, outputs), where="test.pte", etdump=etdump)


def nhwc(x: Tensor) -> tuple[int, int, int, int]:
    return (x.shape[0], x.shape[2], x.shape[3], x.shape[1])


def with_crc(data: bytes | bytearray) -> bytes:
    return bytes(data[:-4]) + struct.pack("<I", zlib.crc32(bytes(data[:-4])))


# name: (NCHW shape, input in channels-last order, output in channels-last order)
LAYOUTS = {
    "plain to plain": ((2, 5, 8, 6), False, False),
    "channels-last to channels-last": ((2, 5, 8, 6), True, True),
    "plain to channels-last": ((1, 7, 5, 9), False, True),
    "channels-last to plain": ((3, 4, 5, 9), True, False),
    "image": ((1, 3, 32, 32), False, False),
    "one channel": ((1, 1, 9, 7), False, False),
    "one channel in a batch": ((3, 1, 9, 7), False, False),
    "one channel in channels-last order": ((3, 1, 9, 7), True, True),
    "one pixel": ((1, 20, 1, 1), False, False),
    "one row": ((2, 6, 1, 11), False, False),
    "whole blocks": ((1, 48, 5, 17), False, False),
    "blocks and remainders": ((1, 35, 9, 20), False, True),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_channels_last_graph_takes_every_layout(name: str):
    shape, input_last, output_last = LAYOUTS[name]
    x = random_int8(*shape)
    expected = pool(x)
    if input_last:
        x = x.to(memory_format=CHANNELS_LAST)
    if output_last:
        expected = expected.to(memory_format=CHANNELS_LAST)
    program = load([payload_of(compiled(pool_model(nhwc(x))), [1], [1])], [x], [[expected]])
    for _ in range(2):
        (y,) = program.run(x)
        assert torch.equal(y, expected)


def test_three_dimensional_signal():
    x = random_int8(2, 6, 13)  # NCW
    expected = pool(x.unsqueeze(2)).squeeze(2)
    program = load([payload_of(compiled(pool_model((2, 1, 13, 6))), [1], [1])], [x], [[expected]])
    assert torch.equal(program.run(x)[0], expected)


@pytest.mark.parametrize("channels_last", [False, True], ids=["plain", "channels-last"])
def test_formatless_graph_sees_the_logical_order(channels_last: bool):
    x = random_int8(1, 6, 7, 5)  # the graph reads its dimensions as N, H, W, C
    expected = pool(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1).contiguous()
    payload = payload_of(compiled(pool_model((1, 6, 7, 5))), [0], [0])
    if channels_last:
        x = x.to(memory_format=CHANNELS_LAST)
        expected = expected.to(memory_format=CHANNELS_LAST)
    assert torch.equal(load([payload], [x], [[expected]]).run(x)[0], expected)


def test_several_inputs_and_outputs_in_other_orders():
    a, b = random_int8(1, 3, 6, 6), random_int8(1, 5, 4, 8, seed=1)
    payload = payload_of(compiled(pool_model(nhwc(a), nhwc(b))), [1, 1], [1, 1], input_map=[1, 0], output_map=[1, 0])
    expected = [pool(b), pool(a)]
    outputs = load([payload], [b, a], [expected]).run(b, a)
    assert all(torch.equal(y, e) for y, e in zip(outputs, expected, strict=True))


def test_several_delegates_in_one_program():
    x = random_int8(1, 9, 8, 8)
    y, z = pool(x), pool(pool(x))
    payloads = [payload_of(compiled(pool_model(nhwc(t))), [1], [1]) for t in (x, y)]
    assert torch.equal(load(payloads, [x], [[y], [z]]).run(x)[0], z)


@pytest.mark.parametrize("channels_last", [False, True], ids=["transposed", "as they are"])
def test_tensors_and_payload_at_odd_addresses(channels_last: bool):
    x = random_int8(2, 5, 8, 6)
    if channels_last:
        x = x.to(memory_format=CHANNELS_LAST)
    payload = payload_of(compiled(pool_model(nhwc(x))), [1], [1])
    for misaligned in (1, 4):
        pte = program_of([payload], [x], [[pool(x)]], misaligned=misaligned)
        assert pte.index(payload) % 16 != 0
        program = LoadedProgram(pte, where="test.pte", etdump=False)
        assert torch.equal(program.run(x)[0], pool(x))


def test_programs_live_side_by_side():
    x, y = random_int8(1, 3, 6, 6), random_int8(2, 8, 5, 7, seed=1)
    first = load([payload_of(compiled(pool_model(nhwc(x))), [1], [1])], [x], [[pool(x)]])
    second = load([payload_of(compiled(pool_model(nhwc(y))), [1], [1])], [y], [[pool(y)]])
    assert torch.equal(first.run(x)[0], pool(x))
    assert torch.equal(second.run(y)[0], pool(y))
    del first
    assert torch.equal(second.run(y)[0], pool(y))


def test_programs_run_in_threads_of_their_own():
    """Also the sentence of an error goes to the thread whose program it is about."""
    shapes = [(1, 3, 6, 6), (2, 8, 5, 7)]

    def work(number: int) -> None:
        x = random_int8(*shapes[number], seed=number)
        payload = payload_of(compiled(pool_model(nhwc(x))), [1], [1])
        program = load([payload], [x], [[pool(x)]])
        wrong = load([payload], [x[:, :, 1:]], [[pool(x)]])
        for seed in range(20):
            y = random_int8(*shapes[number], seed=seed)
            assert torch.equal(program.run(y)[0], pool(y))
            with pytest.raises(RuntimeFailure, match=rf"has {x[:, :, 1:].nbytes} bytes, the graph wants {x.nbytes}"):
                wrong.run(x[:, :, 1:])

    with ThreadPoolExecutor(len(shapes)) as threads:
        list(threads.map(work, range(len(shapes))))


@pytest.mark.parametrize("target", targets.geometries())
def test_every_target_runs(target: str):
    x = random_int8(1, 17, 9, 9)
    payload = payload_of(compiled(pool_model(nhwc(x)), target=target), [1], [1], target=target)
    assert torch.equal(load([payload], [x], [[pool(x)]]).run(x)[0], pool(x))


def test_payload_without_identity_block_runs():
    x = random_int8(1, 3, 6, 6)
    payload = payload_of(compiled(pool_model(nhwc(x))), [1], [1])
    stock = payload[: len(payload) - struct.unpack_from("<I", payload, len(payload) - 16)[0]]
    assert torch.equal(load([stock], [x], [[pool(x)]]).run(x)[0], pool(x))


# name: (program's example input, part of the sentence); the graph wants int8 (1, 3, 6, 6)
WRONG_ARGUMENTS = {
    "element type": (
        random_int8(1, 3, 6, 6).to(torch.uint8),
        r"input 0 \(argument 0\) has element type uint8, .* int8",
    ),
    "bytes": (random_int8(1, 3, 6, 7), r"input 0 \(argument 0\) has 126 bytes, the graph wants 108"),
    "channels": (random_int8(1, 6, 3, 6), r"input 0 \(argument 0\) has 6 channels, the graph wants 3"),
}


@pytest.mark.parametrize("name", WRONG_ARGUMENTS)
def test_argument_that_does_not_fit_is_refused(name: str):
    x, sentence = WRONG_ARGUMENTS[name]
    payload = payload_of(compiled(pool_model((1, 6, 6, 3))), [1], [1])
    program = load([payload], [x], [[pool(random_int8(1, 3, 6, 6))]])
    with pytest.raises(RuntimeFailure, match=sentence):
        program.run(x)


def test_missing_argument_is_refused():
    x = random_int8(1, 3, 6, 6)
    payload = payload_of(compiled(pool_model(nhwc(x))), [1], [1], output_map=[4])
    with pytest.raises(RuntimeFailure, match=r"output 0 \(argument 5\) is missing: the program hands over 2 arguments"):
        load([payload], [x], [[pool(x)]]).run(x)


def _other_target(data: bytearray) -> None:
    at = data.rindex(b"imxrt700")
    data[at : at + 8] = b"mcxn94x\0"


def _word(offset: int, value: int):
    def change(data: bytearray) -> None:
        struct.pack_into("<I", data, CODE_AT + offset, value)

    return change


# name: (change of the payload, whether its checksum is made right again, part of the sentence)
REFUSED = {
    "NXP's microcode": (
        _word(4, 0x11223344),
        True,
        "made by NXP's converter: it runs on NXP silicon, not in the simulator",
    ),
    "another format version": (_word(4, VERSION_WORD + 1), True, "open microcode of format version 2; .* version 1"),
    "changed byte": (_word(200, 0xFFFFFFFF), False, "checksum is wrong"),
    "another target": (_other_target, True, "made for mcxn94x, its microcode for imxrt700"),
    "no magic": (_word(0, 0), True, "microcode at byte 16 starts with 0x00000000"),
    "microcode beyond the end": (_word(24, 0x7FFFFFF0), True, "the microcode of 2147483632 bytes at byte 16 leaves"),
    "damaged microcode": (_word(140, 0xFFFFFFFF), True, r"could not prepare the payload: .*driver error 0x"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_payload_is_refused_with_a_sentence(name: str):
    change, repair, sentence = REFUSED[name]
    x = random_int8(1, 3, 6, 6)
    data = bytearray(payload_of(compiled(pool_model(nhwc(x))), [1], [1]))
    change(data)
    with pytest.raises(RuntimeFailure, match=sentence) as caught:
        load([with_crc(data) if repair else bytes(data)], [x], [[pool(x)]])
    assert str(caught.value).startswith("test.pte: ")
    assert (caught.value.code != 0) == ("driver error" in sentence)


@pytest.mark.parametrize("size", [0, 3, 9, 40, 150], ids=lambda size: f"{size} bytes")
def test_short_payload_is_refused(size: int):
    x = random_int8(1, 3, 6, 6)
    data = payload_of(compiled(pool_model(nhwc(x))), [1], [1])[:size]
    with pytest.raises(RuntimeFailure, match="payload"):
        load([data], [x], [[pool(x)]])


def _events(program: LoadedProgram, path: Path) -> list:
    from executorch.devtools import Inspector

    program.write_etdump(path)
    blocks = Inspector(etdump_path=str(path)).event_blocks
    return [event for block in blocks for event in block.events if event.is_delegated_op]


def _metadata(event) -> dict[str, float]:
    (text,) = event.delegate_debug_metadatas
    return {key: float(value) for key, value in (item.split("=") for item in text.decode().split())}


def test_profiled_kernel_calls_become_events_in_target_time(tmp_path: Path):
    x = random_int8(1, 9, 8, 8)
    y = pool(x)
    payloads = [payload_of(compiled(pool_model(nhwc(t)), profiling=True), [1], [1], profiling=True) for t in (x, y)]
    program = load(payloads, [x], [[y], [pool(y)]], etdump=True)
    assert torch.equal(program.run(x)[0], pool(y))
    events = _events(program, tmp_path / "run.etdp")
    assert [event.name for event in events] == ["max_pool2d:0", "max_pool2d:0"]
    clock = targets.load("imxrt700").clock_hz
    for event in events:
        details = _metadata(event)
        cycles = details["cycles"]
        parts = details["compute"] + details["memory"] + details["overhead"]
        assert cycles > 0 and parts <= cycles + 0.2 and cycles < parts + 1.2  # each part is printed to a tenth
        (milliseconds,) = event.perf_data.raw
        assert milliseconds == pytest.approx(cycles / clock * 1e3, abs=2e-6)  # ETDump counts whole nanoseconds


def test_without_profiling_nothing_is_recorded(tmp_path: Path):
    x = random_int8(1, 3, 6, 6)
    program = load([payload_of(compiled(pool_model(nhwc(x))), [1], [1])], [x], [[pool(x)]], etdump=True)
    program.run(x)
    assert _events(program, tmp_path / "run.etdp") == []
