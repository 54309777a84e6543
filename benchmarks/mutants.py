"""Plants faults in the compiler, or in compiled files, and counts who finds them.

    python benchmarks/mutants.py [COUNT] [--first SEED] [--write]
    python benchmarks/mutants.py [COUNT] --container [--first SEED] [--write]

The first form breaks one stage of the compiler for each fault, 1,000 unless COUNT says otherwise. A fault of outcome
`simulation` is one that neither verifier nor checker refuses.

With `--container` the fault is in the file around the microcode: its tables, buffers, signatures and names, the blocks, the
source, the certificate, and a `.pte` with its debug bundle; 5,000 of them. A fault of outcome `proved otherwise` is one that
the checker accepts although the file computes something else, or is shaped or named otherwise.

Either outcome makes the exit code 1. `--write` puts the table into docs/compiler.md.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.mutants import container, judge  # noqa: E402

PAGE = ROOT / "docs" / "compiler.md"
COUNT, COUNT_OF_FILES = 1000, 5000
_EVERY = 10  # of the container's faults one is in a program or its debug bundle


def container_judge() -> Callable[[int], container.ChangedFile | None]:
    """The function that judges a fault in a file or a program by its seed."""
    from tests.mutants.program import compiled_program

    data, part = compiled_program()

    def judge_one(seed: int) -> container.ChangedFile | None:
        number, rest = divmod(seed, _EVERY)
        return container.judge_program(number, data, part) if rest == 0 else container.judge_file(seed - number - 1)

    return judge_one


def find(judge_one: Callable[[int], Any], count: int, first: int = 0) -> list[Any]:
    """Return the first `count` faults that can be planted, by their seeds; those that pass every check are printed."""
    found: list[Any] = []
    for seed in itertools.count(first):
        if len(found) == count:
            break
        mutant = judge_one(seed)
        if mutant is not None:
            found.append(mutant)
            if mutant.outcome in ("simulation", "proved otherwise"):
                print(mutant, flush=True)
    return found


def place(name: str) -> re.Pattern[str]:
    """Return the pattern of a table in the page, between its comments."""
    return re.compile(rf"(<!-- {name} -->\n)(.*?)(\n<!-- end of {name} -->)", re.DOTALL)


def main() -> None:
    """Judge faults until there are as many as asked for, and print the table."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("count", type=int, nargs="?")
    arguments.add_argument("--first", type=int, default=0)
    arguments.add_argument("--write", action="store_true", help="put the table into docs/compiler.md")
    arguments.add_argument("--container", action="store_true", help="faults in files instead of in the compiler")
    given = arguments.parse_args()
    if given.container:
        found = find(container_judge(), given.count or COUNT_OF_FILES, given.first)
        name, text = "mutants of files", container.table(found)
    else:
        found = find(judge.judge, given.count or COUNT, given.first)
        name, text = "mutants", judge.table(found)
    print(text)
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(place(name).sub(lambda m: m[1] + text + m[3], page), encoding="utf-8")
    if any(one.outcome in ("simulation", "proved otherwise") for one in found):
        sys.exit(1)


if __name__ == "__main__":
    main()
