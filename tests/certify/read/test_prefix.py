"""Prefix codes decoded from bits written by hand."""

from __future__ import annotations

import pytest

from openneutron.certify.read.prefix import Code, Damaged, rice, static


def stream(bits: str) -> bytes:
    bits = bits.replace(" ", "")
    return int(bits.ljust(-(-len(bits) // 8) * 8, "0"), 2).to_bytes(-(-len(bits) // 8), "big")


def test_rice_codes_are_ones_a_zero_and_low_bits() -> None:
    # Folded values 0, 1, 2, 5 with one low bit: 0, -1, 1, -3.
    assert rice(1).weights(stream("00 01 100 1101"), 4) == bytes([0, 255, 1, 253])
    assert rice(0).weights(stream("0 10 110"), 3) == bytes([0, 255, 1])


def test_another_number_of_weights_is_damage() -> None:
    for count in (0, 3, 9):
        with pytest.raises(Damaged):
            rice(1).weights(stream("00 01 100 1101"), count)


def test_what_fills_the_last_byte_is_zeros() -> None:
    assert rice(2).weights(stream("001"), 1) == b"\xff"
    with pytest.raises(Damaged):
        rice(2).weights(bytes([0b00100001]), 1)
    with pytest.raises(Damaged):
        rice(2).weights(stream("001") + b"\0", 1)


def test_runs_of_zeros_are_counted_in_bijective_binary() -> None:
    code = Code({"0": "\u0100", "10": "\u0101", "11": "\x05"})
    assert code.weights(stream("11 0 11"), 3) == bytes([5, 0, 5])
    assert code.weights(stream("11 10 0 11"), 6) == bytes([5, 0, 0, 0, 0, 5]), "2 + 2 * 1"


def test_a_described_code_is_read_from_its_lengths() -> None:
    # Five symbols: 0 and 1 (digits of runs) without a code, 2 (+1), 3 (-1) and 4 (+2) with lengths 1, 2, 2.
    bits = f"{5:09b}" + "1110 1110" + "1111 0001" + "10" + "0"
    code, size = static(stream(bits) + stream("0 10 11 0"))
    assert size == len(stream(bits))
    assert code.weights(stream("0 10 11 0"), 4) == bytes([1, 255, 2, 1])


@pytest.mark.parametrize("bits", [f"{400:09b}", f"{3:09b}" + "1111 0000", f"{4:09b}" + "1111 0001" + "0" + "0" + "0"])
def test_descriptions_that_are_no_code_are_damage(bits: str) -> None:
    with pytest.raises(Damaged):
        static(stream(bits) + bytes(2))
