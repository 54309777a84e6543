"""Tags: known bytes, blocks, and tables that compose."""

from __future__ import annotations

from openneutron.certify.tags import Symbols, constant, value_of


def test_known_bytes_come_back() -> None:
    assert value_of(constant(b"\x00\x7f\xff")) == b"\x00\x7f\xff"
    assert value_of(Symbols().tags("x", 4)) is None


def test_tables_compose_and_cancel() -> None:
    symbols = Symbols()
    x = symbols.tags("x", 6)
    up, down = bytes((q + 7) & 0xFF for q in range(256)), bytes((q - 7) & 0xFF for q in range(256))
    twice = bytes((q + 14) & 0xFF for q in range(256))
    assert symbols.apply_table(symbols.apply_table(x, up), down) == x
    assert symbols.apply_table(symbols.apply_table(x, up), up) == symbols.apply_table(x, twice)
    assert symbols.apply_table(x[2:4], up) == symbols.apply_table(x, up)[2:4]
    assert symbols.apply_table(constant(b"\x01"), up) == constant(b"\x08")
