"""The one filter for text that leaves: names from a file cannot command a terminal, a log or a C compiler.

Example:
    >>> printable("conv" + chr(27) + "[2J")
    'conv\\u001b[2J'
"""

from __future__ import annotations

import re

# Characters that tell a terminal to do something (C0 but tab and newline, DEL, C1), or turn the direction of a line round.
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Text that may hold names from a file, with everything a terminal would obey written out, as JSON writes it.

    Example:
        >>> printable("conv" + chr(27) + "[2J")
        'conv\\\\u001b[2J'
    """
    return _COMMANDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def comment(text: str) -> str:
    """Text for a comment in C: one printable line that neither ends the comment nor continues it.

    Example:
        >>> comment("a */ b")
        'a * / b'
    """
    return (
        printable(text).replace("*/", "* /").replace("??/", "? ?/").replace("\\\n", " ").replace("\n", " ").rstrip("\\")
    )
