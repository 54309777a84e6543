"""Sizes in bytes as people write them."""

from __future__ import annotations

import re

from openneutron.errors import OptionError

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_size(text: str, *, option: str) -> int:
    """Bytes in "262144", "256K" or "1M" (also G, KiB, MiB, KB, MB; always powers of two, as memory is sold).

    Example:
        >>> parse_size("256K", option="--fit")
        262144
    """
    found = re.fullmatch(r"(\d+)\s*([KMG]?)(?:I?B)?", text.strip().upper())
    if found is None or int(found[1]) == 0:
        raise OptionError(f"{option} is {text!r}", hint="give bytes such as 262144, 256K or 1M")
    return int(found[1]) * _UNITS[found[2]]
