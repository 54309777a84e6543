"""Work in place of time: how many functions a piece of code calls, the same on every machine however busy it is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls(function: Callable[[], Any]) -> int:
    """How many Python and C functions are called while `function` runs.

    Example:
        >>> calls(lambda: sorted([3, 1, 2]))
        2
    """
    count = 0

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count - 1  # without the call that ends the count
