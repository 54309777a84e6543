from __future__ import annotations

import numpy as np
import pytest

from openneutron.errors import FormatError
from openneutron.microcode.storage.columns import columns_bytes, read_columns, write_columns


def test_a_column_takes_the_bits_of_its_range() -> None:
    table = np.array([[100, 104, 112, 0], [7, 7, 7, 0], [-(2**31), 2**31 - 1, 0, 0]], np.int32)
    stored = write_columns(table, 3)
    assert (
        len(stored) == columns_bytes(table, 3) == 3 * 8 + 1 + 0 + 12
    )  # differences of 4 * (0, 1, 3), none, and of 32 bits
    assert (read_columns(np.frombuffer(stored, np.uint8), 3, 3, 4) == table).all()


def test_what_could_not_be_read_back_has_no_size() -> None:
    table = np.array([[1, 2, 3, 4]], np.int32)
    assert columns_bytes(table, 4) is not None
    assert columns_bytes(table, 3) is None  # the padding is not zero
    assert columns_bytes(table, 5) is None


@pytest.mark.parametrize("size", range(9))
def test_columns_that_end_early_are_refused(size: int) -> None:
    stored = write_columns(np.array([[1, 2, 3, 4]], np.int32), 4)
    assert len(stored) == 9
    with pytest.raises(FormatError):
        read_columns(np.frombuffer(stored[:size], np.uint8), 1, 4, 4)
