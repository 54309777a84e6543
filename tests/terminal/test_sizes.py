from __future__ import annotations

import pytest

from openneutron.errors import OptionError
from openneutron.terminal.sizes import parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("256K", 262144), ("256k", 262144), ("256 KiB", 262144), ("2MB", 2097152), ("1M", 1048576)],
)
def test_sizes_are_powers_of_two(text: str, size: int) -> None:
    assert parse_size(text, option="--fit") == size


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5M", "256T", "K", "lots"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match="--fit is"):
        parse_size(text, option="--fit")
