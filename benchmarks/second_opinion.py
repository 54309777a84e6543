"""Compare every kernel with LiteRT's reference and default kernels, and print where those differ from each other.

    python benchmarks/second_opinion.py [--write]

`--write` puts the table into docs/numerics.md.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.second_opinion import opinions, table  # noqa: E402

_PLACE = re.compile(r"(<!-- opinions -->\n).*?(\n<!-- end of opinions -->)", re.DOTALL)


def main() -> int:
    """Return 1 if a kernel differs from its golden value, else 0."""
    found = list(opinions())
    text = table(found)
    print(f"{len(found)} operators by type\n{text}")
    if "--write" in sys.argv:
        page = ROOT / "docs" / "numerics.md"
        page.write_text(_PLACE.sub(lambda m: m[1] + text + m[2], page.read_text(encoding="utf-8")), encoding="utf-8")
    wrong = [one for one in found if one.to_golden != 0]
    for one in wrong:
        print(f"{one.code} {one.dtype}: {one.to_golden} from {one.golden.name}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
