"""Plants faults in the compiler, or in compiled files, and counts who finds them.

    python benchmarks/mutants.py [COUNT] [--first SEED] [--write]
    python benchmarks/mutants.py [COUNT] --container [--first SEED]

The first form breaks one stage of the compiler for each fault. `--write` puts the table into docs/compiler.md. A fault of
outcome `simulation` is one that neither verifier nor checker refuses.

With `--container` the fault is in the file around the microcode: its tables, buffers, signatures and names, the blocks, the
source, and a `.pte` with its debug bundle. A fault of outcome `proved otherwise` is one that the checker accepts although the
file computes something else, or is shaped or named otherwise.

Either outcome makes the exit code 1.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.mutants import container, judge  # noqa: E402

_PLACE = re.compile(r"(<!-- mutants -->\n).*?(\n<!-- end of mutants -->)", re.DOTALL)
_EVERY = 10  # of the container's faults one is in a program or its debug bundle


def container_judge() -> Callable[[int], container.ChangedFile | None]:
    """The function that judges a fault in a file or a program by its seed."""
    from tests.mutants.program import compiled_program

    data, part = compiled_program()

    def judge_one(seed: int) -> container.ChangedFile | None:
        number, rest = divmod(seed, _EVERY)
        return container.judge_program(number, data, part) if rest == 0 else container.judge_file(seed - number - 1)

    return judge_one


def main() -> None:
    """Judge faults until there are as many as asked for, and print the table."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("count", type=int, nargs="?", default=1000)
    arguments.add_argument("--first", type=int, default=0)
    arguments.add_argument(
        "--write", action="store_true", help="put the table of the compiler's stages into docs/compiler.md"
    )
    arguments.add_argument("--container", action="store_true", help="faults in files instead of in the compiler")
    given = arguments.parse_args()
    if given.write and given.container:
        arguments.error("--write is for the compiler's stages")
    judge_one: Callable[[int], Any] = container_judge() if given.container else judge.judge
    missed, found, seed = 0, [], given.first
    while len(found) < given.count:
        mutant = judge_one(seed)
        seed += 1
        if mutant is not None:
            found.append(mutant)
            if mutant.outcome in ("simulation", "proved otherwise"):
                missed += 1
                print(mutant, flush=True)
    text = (container.table if given.container else judge.table)(found)
    print(text)
    if given.write:
        page = ROOT / "docs" / "compiler.md"
        page.write_text(_PLACE.sub(lambda m: m[1] + text + m[2], page.read_text(encoding="utf-8")), encoding="utf-8")
    if missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
