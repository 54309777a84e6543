"""NXP's container: headers of both layouts, and files that contradict themselves."""

from __future__ import annotations

import struct

import pytest

from openneutron.errors import FormatError
from openneutron.litert import read_model
from openneutron.litert.graph import Operator
from openneutron.microcode.container import decode_container, graphs_of, io_bytes, is_microcode
from openneutron.microcode.table import VERSION_WORD
from tests.compat import nxp_file
from tests.compat.samples import two_outputs


def patched(block: bytes, word: int, value: int) -> bytes:
    return block[: 4 * word] + struct.pack("<I", value) + block[4 * word + 4 :]


def test_the_plain_layout() -> None:
    block = nxp_file.microcode(inputs=2, outputs=3, weights=640, kernels=1, scratch=4096, sram=128, calls=9)
    found = decode_container(block)
    assert found.made_by == "nxp" and found.version_word == nxp_file.VERSION_WORD
    assert (found.microcode_bytes, found.weights_bytes, found.kernels_bytes) == (len(block), 640, 1)
    assert (found.scratch_bytes, found.sram_scratch_bytes, found.profile_bytes) == (4096, 128, 0)
    assert (found.inputs, found.outputs, found.calls) == (2, 3, 9)


def test_the_profiling_layout() -> None:
    block = nxp_file.microcode(inputs=2, outputs=3, scratch=4096, sram=128, calls=9, profiling=True)
    found = decode_container(block, profiling=True)
    assert (found.scratch_bytes, found.sram_scratch_bytes) == (4096, 128)
    assert (found.profile_bytes, found.debug_bytes, found.calls) == (144, 32, None)
    assert (found.inputs, found.outputs) == (2, 3)


def test_our_own_microcode_is_told_apart_by_its_version_word() -> None:
    assert decode_container(patched(nxp_file.microcode(), 1, VERSION_WORD)).made_by == "open"


def test_recognising() -> None:
    assert is_microcode(nxp_file.microcode())
    assert not is_microcode(b"TFL3" * 20) and not is_microcode(b"")


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (b"", "0 bytes are too few for a header of 60"),
        (nxp_file.microcode()[:59], "59 bytes are too few"),
        (patched(nxp_file.microcode(), 0, 7), "word 0 at byte 0 is 0x00000007"),
        (patched(nxp_file.microcode(), 6, 9999), "word 6 at byte 24 says 9999 bytes of microcode, the block has 108"),
        (nxp_file.microcode() + bytes(16), "says 108 bytes of microcode, the block has 124"),
    ],
)
def test_damaged_headers_are_refused_with_the_byte(block: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        decode_container(block, where="x.tflite")


@pytest.mark.parametrize("profiling", [False, True])
def test_the_layout_is_told_by_the_operator(profiling: bool) -> None:
    model = nxp_file.converted(read_model(two_outputs()), profiling=profiling)
    ((op, found),) = graphs_of(model)
    assert found.profiling is profiling
    assert (found.inputs, found.outputs, found.scratch_bytes) == (1, 2, 256)
    assert io_bytes(model.main, op, found) == 8 * 8 * 3 + 8 * 8 * 8 + 4 * 4 * 8


def test_counts_that_contradict_the_operator_are_refused() -> None:
    model = nxp_file.converted(read_model(two_outputs()))
    model.main.operators[0].outputs.pop()
    with pytest.raises(FormatError, match=r"a\.tflite, operator 0: the microcode has 1 inputs and 2 outputs"):
        graphs_of(model, where="a.tflite")


def test_blocks_of_another_size_are_refused() -> None:
    model = nxp_file.converted(read_model(two_outputs()))
    tensor = next(t for t in model.main.tensors if t.name == "NeutronWeights")
    tensor.data, tensor.shape = tensor.data[:32], (32,)
    with pytest.raises(FormatError, match="word 7 at byte 28 says 64 bytes of weights, the block has 32"):
        graphs_of(model)


def test_a_model_without_neutron_graphs_has_none() -> None:
    assert graphs_of(read_model(two_outputs())) == []


@pytest.mark.parametrize("profiling", [False, True])
def test_working_memory_is_no_output_of_the_model(profiling: bool) -> None:
    model = nxp_file.converted(read_model(two_outputs()), profiling=profiling)
    scratch = model.main.operators[0].outputs[2]
    model.main.outputs[1] = scratch
    with pytest.raises(FormatError, match=rf"operator 0: output 1 of the model, tensor {scratch} .*nothing makes it"):
        graphs_of(model, where="a.tflite")


def test_working_memory_is_read_by_nobody() -> None:
    model = nxp_file.converted(read_model(two_outputs()))
    op = model.main.operators[0]
    model.main.operators.append(Operator("TANH", [op.outputs[2]], [op.outputs[0]]))
    with pytest.raises(FormatError, match=r"operator 1 \(TANH\) reads tensor \d+ .*nothing makes it"):
        graphs_of(model)
