"""Code blocks of a Markdown page, and running them as a reader would: in order, in one folder, in one Python session.

- `python` blocks are executed. What the page does not show but needs (a model, a file) stands before them in an HTML
  comment that begins with `<!-- run`.
- `console` blocks: lines that begin with `$ ` are run; lines below them are output, which must appear in that order in
  what the command prints. `…` stands for anything. A command ends with `# exit 1` where that is its exit code.
- `toml` and `json` must parse. `text`, `c`, `cpp`, `cmake` and blocks without a language are pictures.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openneutron.cli.main import run as run_cli

ROOT = Path(__file__).resolve().parents[2]
PICTURES = {"", "text", "c", "cpp", "cmake", "rust", "yaml"}
PARSERS: dict[str, Callable[[str], Any]] = {"toml": tomllib.loads, "json": json.loads}
# Programs that are not run from here, because a test of their own does it.
ELSEWHERE = {
    "qemu-system-arm": "tests/firmware",
    "arm-none-eabi-size": "tests/firmware",
    "cmake": "tests/examples/test_cpp_runner.py, tests/project/test_cmake.py",
    "cpp_runner": "tests/examples/test_cpp_runner.py",
    "pip": "tests/compat/test_eiq.py",
    "git": "nothing: it needs a remote",
    "sudo": "nothing: it needs root",
}
_FENCE = re.compile(r"^(\s*)(```+)\s*([\w+-]*)")
_BOX = re.compile(r"[│╭╮╰╯─┏┓┗┛━┃\s]+")


@dataclass(frozen=True)
class Block:
    """One block: its language, text, and the line it begins on, from 1."""

    language: str
    text: str
    line: int


def blocks_of(markdown: str) -> list[Block]:
    """Every fenced block and every hidden `<!-- run` comment of a page, in order."""
    found: list[Block] = []
    lines = markdown.splitlines()
    at = 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        if fence:
            indent, ticks, language = fence.groups()
            stop = next((i for i in range(at + 1, len(lines)) if lines[i].strip() == ticks), len(lines))
            body = [line.removeprefix(indent) for line in lines[at + 1 : stop]]
            found.append(Block(language, "\n".join(body), at + 2))
            at = stop
        elif lines[at].startswith("<!-- run"):
            stop = next(i for i in range(at + 1, len(lines)) if lines[i].startswith("-->"))
            found.append(Block("python", "\n".join(lines[at + 1 : stop]), at + 2))
            at = stop
        at += 1
    return found


@dataclass
class Session:
    """A reader's session on one page; the current folder is theirs."""

    page: str
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__page__"})

    def run(self, block: Block) -> None:
        """Run one block; an AssertionError names page and line when it does not do what the page says."""
        where = f"{self.page}:{block.line}"
        if block.language == "python":
            # Empty lines in front make tracebacks show the page's own line numbers.
            code = compile("\n" * (block.line - 1) + block.text, self.page, "exec")
            with contextlib.redirect_stdout(io.StringIO()):
                exec(code, self.names)
        elif block.language == "console":
            for command, shown, line in commands_of(block):
                self._command(command, shown, f"{self.page}:{line}")
        elif block.language in PARSERS:
            PARSERS[block.language](block.text)
        else:
            assert block.language in PICTURES, f"{where}: blocks in {block.language!r} are neither run nor pictures"

    def _command(self, command: str, shown: list[str], where: str) -> None:
        code, printed = run_command(command, where)
        expected = re.search(r"# exit (\d+)$", command)
        assert code == int(expected.group(1) if expected else 0), f"{where}: exit code {code}\n{printed}"
        if code is not None and printed is not None:
            missing = first_missing(shown, printed)
            assert missing is None, f"{where}: `{command}` does not print\n{missing}\nbut\n{printed}"


def commands_of(block: Block) -> list[tuple[str, list[str], int]]:
    """(command, lines shown below it, line on the page); a backslash joins lines."""
    found: list[tuple[str, list[str], int]] = []
    lines = iter(enumerate(block.text.splitlines(), block.line))
    for number, line in lines:
        if line.startswith("$ "):
            command = line[2:]
            while command.endswith("\\"):
                command = command[:-1] + next(lines)[1].strip()
            found.append((command, [], number))
        elif line.strip():
            assert found, f"line {number}: output before any command"
            found[-1][1].append(line)
    return found


def run_command(command: str, where: str) -> tuple[int, str | None]:
    """Exit code and output; output is None where the command is another test's."""
    words = shlex.split(command, comments=True)
    into = None
    if ">" in words:
        into, words = Path(words[words.index(">") + 1]), words[: words.index(">")]
    program, *arguments = words
    program = Path(program).name
    script = _script(program, arguments)
    if script is not None:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = script()
        if into is not None:
            into.write_text(out.getvalue(), "utf-8")
        return code, out.getvalue()
    if program == "make":
        _check_make(arguments, where)
        return 0, None
    if program == "python":
        words = [sys.executable, *(str(ROOT / a) if (ROOT / a).is_file() else a for a in arguments)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr
    if program in ("ls", "cat", "mkdir", "cp"):
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
        return done.returncode, " ".join(done.stdout.split()) if program == "ls" else done.stdout + done.stderr
    assert program in ELSEWHERE, f"{where}: who tests `{program}`? Say it in tests/docs/blocks.py"
    return 0, None


def _script(program: str, arguments: list[str]) -> Callable[[], int] | None:
    """A command of ours, to be called here: a process would load torch again. Tests of each start it as a process."""
    if program == "openneutron":
        return lambda: run_cli(arguments)
    if program == "python" and arguments[0] == "-m" and arguments[1].startswith("openneutron."):
        return lambda: int(importlib.import_module(arguments[1]).main(arguments[2:]))
    return None


def _check_make(arguments: list[str], where: str) -> None:
    """The target exists: running all of CI inside one of its tests would never end."""
    file = ROOT / (arguments[arguments.index("-f") + 1] if "-f" in arguments else "Makefile")
    text = file.read_text("utf-8")
    wanted = [a for a in arguments if not a.startswith("-") and "=" not in a and (ROOT / a) != file]
    for target in wanted:
        assert re.search(rf"^{re.escape(target)}\b.*:", text, re.MULTILINE), f"{where}: no target {target!r}"


def first_missing(shown: list[str], printed: str) -> str | None:
    """The first shown line that does not follow in the printed text; spaces and box lines are one space."""
    text = _BOX.sub(" ", printed)
    at = 0
    for line in shown:
        parts = [_BOX.sub(" ", part).strip() for part in line.split("…")]
        pattern = ".*?".join(re.escape(part) for part in parts if part)
        found = re.compile(pattern, re.DOTALL).search(text, at) if pattern else None
        if pattern and found is None:
            return line
        at = found.end() if found else at
    return None
