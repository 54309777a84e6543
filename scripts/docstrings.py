"""Print docstrings drawn at random, so that a reader can judge whether a stranger understands them.

    python scripts/docstrings.py [--count 40] [--seed 0] [FOLDER ...]

Each one is printed with its module, line and signature, as an editor would show it. The project's own goal is that a reader
who knows neural networks, but not this project, understands 38 of 40 at first reading.
"""

from __future__ import annotations

import argparse
import ast
import random
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Docstring:
    """One docstring, with its place and the signature it belongs to."""

    where: str
    signature: str
    text: str


def signature(node: Documented) -> str:
    """Return the declaration of a class or a function; "module" for a file."""
    if isinstance(node, ast.Module):
        return "module"
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(map(ast.unparse, node.bases))
        return f"class {node.name}({bases})" if bases else f"class {node.name}"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"def {node.name}({ast.unparse(node.args)}){returns}"


def _shown(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def docstrings(folders: Sequence[Path]) -> Iterator[Docstring]:
    """Yield every docstring of the Python files in the folders, sorted by file."""
    for path in sorted(
        {path for folder in folders for path in ([folder] if folder.is_file() else folder.rglob("*.py"))}
    ):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, Documented) and (text := ast.get_docstring(node)):
                yield Docstring(f"{_shown(path)}:{getattr(node, 'lineno', 1)}", signature(node), text)


def draw(found: Sequence[Docstring], count: int, seed: int) -> list[Docstring]:
    """Return up to `count` docstrings, the same ones for the same seed."""
    return random.Random(seed).sample(found, min(count, len(found)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the drawn docstrings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[ROOT / "src"], help="folders or files, default: src/")
    parser.add_argument("--count", type=int, default=40, help="how many to draw")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(arguments)
    for number, one in enumerate(draw(list(docstrings(args.folders)), args.count, args.seed), 1):
        print(f"{number:2}. {one.where}\n    {one.signature}\n{textwrap.indent(one.text, '        ')}\n")


if __name__ == "__main__":
    main()
