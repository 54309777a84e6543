from __future__ import annotations

import numpy as np

from openneutron.microcode.storage.bits import windows, write


def test_codes_follow_each_other_from_the_highest_bit() -> None:
    data, sizes = write(np.array([1, 5, 0x1FFFFFF]), np.array([1, 3, 25]), np.array([0, 2]))
    assert data == bytes([0b11010000, 0xFF, 0xFF, 0xFF, 0x80])
    assert sizes.tolist() == [1, 4]


def test_a_window_is_the_bits_that_come_next() -> None:
    seen = windows(np.array([0xA5, 0x3C], np.uint8))
    assert seen[0] == 0xA53C and seen[4] == 0x53C0 and seen[15] == 0
