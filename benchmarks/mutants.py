"""Plants faults in every stage of the compiler and counts who finds them.

    python benchmarks/mutants.py [COUNT] [--first SEED] [--write]

`--write` puts the table into docs/compiler.md. A line `simulation` would be a fault that neither verifier nor checker sees.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.mutants.judge import judge, table  # noqa: E402

_PLACE = re.compile(r"(<!-- mutants -->\n).*?(\n<!-- end of mutants -->)", re.DOTALL)


def main() -> None:
    """Judge mutants until there are as many as asked for, and print the table."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("count", type=int, nargs="?", default=1000)
    arguments.add_argument("--first", type=int, default=0)
    arguments.add_argument("--write", action="store_true")
    given = arguments.parse_args()
    found = []
    seed = given.first
    while len(found) < given.count:
        mutant = judge(seed)
        seed += 1
        if mutant is not None:
            found.append(mutant)
            if mutant.outcome == "simulation":
                print(mutant, flush=True)
    text = table(found)
    print(text)
    if given.write:
        page = ROOT / "docs" / "compiler.md"
        page.write_text(_PLACE.sub(lambda m: m[1] + text + m[2], page.read_text(encoding="utf-8")), encoding="utf-8")
    if any(one.outcome == "simulation" for one in found):
        sys.exit(1)


if __name__ == "__main__":
    main()
