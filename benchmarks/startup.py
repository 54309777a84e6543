"""CPU seconds of `openneutron --help` and `import openneutron`, as ratios to an empty interpreter in the same run.

python benchmarks/startup.py
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys

ROUNDS = 7  # the median of seven interleaved rounds is stable to a few milliseconds

CONTESTANTS = {
    "python -c pass": ["-c", "pass"],
    "import openneutron": ["-c", "import openneutron"],
    "openneutron --help": ["-m", "openneutron", "--help"],
}


def cpu_seconds(arguments: list[str]) -> float:
    """Return the user and system time of one interpreter."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Interleave the contestants and print medians and ratios."""
    rounds = [{name: cpu_seconds(arguments) for name, arguments in CONTESTANTS.items()} for _ in range(ROUNDS)]
    medians = {name: statistics.median(found[name] for found in rounds) for name in CONTESTANTS}
    base = medians["python -c pass"]
    for name, seconds in medians.items():
        print(f"{name:20} {seconds:6.3f} s of CPU  {seconds / base:5.1f}x an empty interpreter")


if __name__ == "__main__":
    main()
