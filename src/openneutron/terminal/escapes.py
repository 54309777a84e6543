"""Escape control characters, so that names from a file cannot command a terminal, a log or a C compiler.

Example:
    >>> printable("conv" + chr(27) + "[2J")
    'conv\\u001b[2J'
"""

from __future__ import annotations

# Characters that tell a terminal to do something (C0 but tab and newline, DEL, C1), or turn the direction of a line round.
_RANGES = ((0x00, 0x08), (0x0B, 0x1F), (0x7F, 0x9F), (0x200E, 0x200F), (0x2028, 0x202E), (0x2066, 0x2069))
_COMMANDS = {code: f"\\u{code:04x}" for first, last in _RANGES for code in range(first, last + 1)}


def printable(text: str) -> str:
    """Return text with all control characters written as JSON escapes.

    Example:
        >>> printable("conv" + chr(27) + "[2J")
        'conv\\\\u001b[2J'
    """
    return text.translate(_COMMANDS)


def comment(text: str) -> str:
    """Return text for a C comment: one printable line that cannot end or continue the comment.

    Example:
        >>> comment("a */ b")
        'a * / b'
    """
    return (
        printable(text).replace("*/", "* /").replace("??/", "? ?/").replace("\\\n", " ").replace("\n", " ").rstrip("\\")
    )
