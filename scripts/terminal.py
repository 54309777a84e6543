"""Records a session on a terminal as SVG: runs the commands for real, in a pseudo terminal, and draws what they print.

Run `python scripts/terminal.py docs/images/terminal.svg` (or `make screenshots`); the README shows the picture.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 112  # columns; the widest table of the session needs no more
COMMANDS = (
    "openneutron compile cifarnet -o cifarnet.pte --target imxrt700",
    "openneutron ops conv2d",
    "openneutron run cifarnet.pte",
)


def output_of(command: str, folder: Path) -> str:
    """What a command writes on a terminal; its progress goes to stderr and is left out."""
    ours, theirs = pty.openpty()
    paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": paths, "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    with open(os.devnull, "wb") as nowhere:
        process = subprocess.Popen(
            command.split(),
            stdin=theirs,
            stdout=theirs,
            stderr=nowhere,
            cwd=folder,
            env=environment,
        )
    os.close(theirs)
    parts = []
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(ours)
    if process.wait() != 0:
        raise SystemExit(f"{command}: exit code {process.returncode}")
    return b"".join(parts).decode().replace("\r\n", "\n").rstrip("\n")


def record(commands: tuple[str, ...], title: str = "openneutron") -> str:
    """The session as SVG text."""
    with open(os.devnull, "w") as nowhere, tempfile.TemporaryDirectory() as folder:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True, color_system="truecolor")
        for command in commands:
            console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
            console.print(without_seconds(Text.from_ansi(output_of(command, Path(folder)))), soft_wrap=True)
            console.print()
        # A fixed name, so that a new recording changes no more than the text.
        made = console.export_svg(title=title, unique_id="terminal")
    return without_fonts(made)


def without_seconds(text: Text) -> Text:
    """Without the rows that say how long a compile took: they tell of the machine that recorded it, and of its load."""
    kept, inside = [], False
    for line in text.split("\n"):
        if line.plain.startswith(("│ seconds", "╰")):
            inside = line.plain.startswith("│ seconds")
        if not inside:
            kept.append(line)
    return Text("\n").join(kept)


def without_fonts(svg: str) -> str:
    """Without the font faces that rich loads from a server: a viewer's own monospaced font does."""
    plain = re.sub(r"@font-face \{[^}]*\}", "", svg)
    return plain.replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, monospace")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(record(COMMANDS), "utf-8")
    print(sys.argv[1])
