"""Print a digest of what every model compiles to: files and zoo models, on every target.

    python scripts/digests.py [--models FOLDER] [--zoo NAME ...]

Two runs, before and after a change that should move no byte, are compared with `diff`.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import openneutron as on
from openneutron import zoo
from openneutron.machine import targets


def digest(data: bytes) -> str:
    """The first half of a SHA-256, enough to tell two files apart."""
    return hashlib.sha256(data).hexdigest()[:16]


def of_files(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Each file on each target."""
    for path in sorted(folder.glob("*.tflite")):
        for target in targets.names():
            try:
                program = on.compile(path, target=target)
            except on.OpenNeutronError as error:
                yield path.name, target, f"refused: {error}"
                continue
            yield path.name, target, f"{digest(program.data)} {len(program.data)}"


def of_zoo(names: list[str]) -> Iterator[tuple[str, str, str]]:
    """Each zoo model on each target."""
    for name in names:
        model = zoo.load(name)
        for target in targets.names():
            try:
                program = on.compile(model.model, model.example_inputs, calibration=model.calibration, target=target)
            except on.OpenNeutronError as error:
                yield name, target, f"refused: {error}"
                continue
            yield name, target, f"{digest(program.data)} {len(program.data)}"


def main() -> None:
    """Print one line per model and target."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, help="a folder of .tflite files")
    parser.add_argument("--zoo", nargs="*", default=zoo.names(), help="zoo models; none: leave the zoo out")
    args = parser.parse_args()
    for model, target, result in chain(of_files(args.models) if args.models else (), of_zoo(args.zoo)):
        print(f"{model:42} {target:10} {result}", flush=True)


if __name__ == "__main__":
    main()
