"""A `.pte` whose delegate is not what the debug bundle proves is refused with its byte."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from openneutron.certify.program import prove_program
from openneutron.certify.read.pte import Delegate, delegates
from openneutron.certify.refused import Refused
from openneutron.microcode.pte_constants import read_constants

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def compiled() -> tuple[bytes, Callable[[str], bytes]]:
    """A network of two inputs and two results."""
    import openneutron

    class Two(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = torch.nn.Conv2d(3, 4, 3), torch.nn.Conv2d(3, 4, 3)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            u, v = self.a(x), self.b(y)
            return u + v, torch.relu(u - v)

    torch.manual_seed(0)
    given = torch.randn(1, 3, 6, 6), torch.randn(1, 3, 6, 6)
    return with_bundle(openneutron.compile(Two().eval(), given, calibration=[given], dump_intermediates=True))


def with_bundle(program: Any) -> tuple[bytes, Callable[[str], bytes]]:
    """Return a program's bytes and the files of its bundle by name."""

    def part(name: str) -> bytes:
        found = program.intermediates[name]
        return found.encode() if isinstance(found, str) else found

    return program.data, part


def reseal(data: bytearray, end: int) -> bytes:
    """Return the program with a correct checksum of the payload that ends at `end`."""
    start = max(at for at in range(end) if data[at : at + 2] == bytes([2, 2]) and data[at + 16 : at + 20] == b"nMCd")
    data[end - 4 : end] = zlib.crc32(data[start : end - 4]).to_bytes(4, "little")
    return bytes(data)


def test_the_program_is_proved(compiled: tuple[bytes, Callable[[str], bytes]]) -> None:
    (proof,) = prove_program(*compiled)
    assert proof.calls > 0 and proof.outputs == 2


def test_methods_that_tell_the_scales_of_int8_are_part_of_the_frame() -> None:
    import openneutron

    given = (torch.linspace(-1, 1, 48).reshape(1, 3, 4, 4),)
    made = openneutron.compile(
        torch.nn.Conv2d(3, 4, 3).eval(),
        given,
        calibration=[given],
        int8_io=True,
        dump_intermediates=True,
        quality="plain",
    )
    data, part = with_bundle(made)
    assert len(prove_program(data, part)) == 1
    scale = read_constants(data, where="int8.pte")["forward_input0_scale"][0]
    at = data.index(struct.pack("<d", scale))
    with pytest.raises(Refused, match="the program around the delegates is not"):
        prove_program(data[:at] + struct.pack("<d", 2 * scale) + data[at + 8 :], part)


@pytest.mark.parametrize("kind", ["inputs", "outputs"])
def test_swapped_arguments_are_refused(compiled: tuple[bytes, Callable[[str], bytes]], kind: str) -> None:
    data, part = bytearray(compiled[0]), compiled[1]
    (found,) = delegates(compiled[0])
    at = found.maps + (2 if kind == "outputs" else 0)
    data[at : at + 2] = data[at : at + 2][::-1]
    with pytest.raises(Refused, match="is handed over where it should be") as refusal:
        prove_program(reseal(data, found.end), part)
    assert refusal.value.offset == at


@pytest.mark.parametrize("block", range(2))
def test_other_blocks_are_refused_at_their_first_byte(
    compiled: tuple[bytes, Callable[[str], bytes]], block: int
) -> None:
    data, part = bytearray(compiled[0]), compiled[1]
    found: Delegate = delegates(compiled[0])[0]
    at = found.starts[block] + len(found.blocks[block]) // 2
    data[at] ^= 1
    with pytest.raises(Refused, match="is not that of the debug bundle") as refusal:
        prove_program(reseal(data, found.end), part)
    assert refusal.value.offset == at


def test_a_bundle_of_another_model_is_refused_by_name(compiled: tuple[bytes, Callable[[str], bytes]]) -> None:
    data, part = compiled
    with pytest.raises(Refused, match=r"delegate 0: partition_0_converted.tflite: byte \d+: "):
        prove_program(data, lambda name: part(name)[:400] if "converted" in name else part(name))
