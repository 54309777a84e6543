from __future__ import annotations

import pytest

from openneutron.errors import FormatError
from openneutron.microcode.seal import check_seal, remove_seal, seal_pte, write_sealed

PTE = bytes(range(200))


def test_a_seal_is_put_on_once_and_taken_off() -> None:
    sealed = seal_pte(PTE)
    assert sealed.startswith(PTE) and len(sealed) == len(PTE) + 16
    assert check_seal(sealed, where="m.pte") and not check_seal(PTE, where="m.pte")
    assert seal_pte(sealed) == sealed
    assert remove_seal(sealed, where="m.pte") == remove_seal(PTE, where="m.pte") == PTE


def test_a_program_is_sealed_as_it_is_written() -> None:
    assert write_sealed(lambda file: (file.write(PTE[:80]), file.write(PTE[80:]))) == seal_pte(PTE)


@pytest.mark.parametrize("at", [0, 199, 208, 212, 215])
def test_a_changed_byte_is_found_with_the_place_of_the_checksum(at: int) -> None:
    damaged = bytearray(seal_pte(PTE))
    damaged[at] ^= 1
    with pytest.raises(FormatError, match="byte 212") as error:
        check_seal(bytes(damaged), where="m.pte")
    assert "checksum is wrong" in str(error.value)


@pytest.mark.parametrize("data", [b"", b"short", bytes(16)])
def test_what_is_too_short_or_has_another_end_is_not_sealed(data: bytes) -> None:
    assert not check_seal(data, where="m.pte")
