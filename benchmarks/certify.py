"""Compile models for every target and prove the results; prints one line each, with the time of the proof.

    python benchmarks/certify.py FILE.tflite … [--zoo NAME …] [--target NAME …]

`--zoo` alone means every model of the zoo. The time of a proof is a multiple of the compile's in the same run. The exit code
is 1 if a proof is refused.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openneutron.certify.program import prove_program
from openneutron.certify.prove import Proof, prove
from openneutron.certify.refused import Refused
from openneutron.convert import convert
from openneutron.errors import OpenNeutronError
from openneutron.machine import targets
from openneutron.options import Options
from openneutron.terminal.quiet import quiet

HEAD = ("model", "target", "NeutronGraphs", "calls", "copies", "proof ÷ compile", "")


@dataclass(frozen=True)
class Line:
    """One model on one target; `refused` says why it was not proved."""

    model: str
    target: str
    proofs: list[Proof]
    ratio: float
    refused: str = ""

    def cells(self) -> list[str]:
        """Return the row of the table."""
        sums = [sum(getattr(one, name) for one in self.proofs) for name in ("graphs", "calls", "copies")]
        last = self.refused or "proved"
        return [self.model, self.target, *(f"{one:,}" for one in sums), f"{self.ratio:.1f}", last]


def _timed(work: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def _judged(name: str, target: str, compiled: float, work: Any) -> Line:
    try:
        proofs, spent = _timed(work)
    except Refused as error:
        return Line(name, target, [], 0.0, f"refused: {error}")
    return Line(name, target, proofs, spent / compiled)


def file_line(path: Path, target: str) -> Line:
    """Compile and prove a LiteRT file."""
    source = path.read_bytes()
    try:
        result, spent = _timed(lambda: convert(source, Options(target=target, source=str(path))))
    except OpenNeutronError as error:
        return Line(path.name, target, [], 0.0, f"not compiled: {error}")
    return _judged(path.name, target, spent, lambda: [prove(result.model, source)])


def zoo_line(name: str, target: str) -> Line:
    """Compile and prove a model of the zoo, from PyTorch."""
    import openneutron
    from openneutron import zoo

    one = zoo.load(name)
    program, spent = _timed(
        lambda: openneutron.compile(
            one.model, one.example_inputs, calibration=one.calibration[:2], target=target, dump_intermediates=True
        )
    )

    def part(file: str) -> bytes:
        found = program.intermediates[file]
        return found.encode() if isinstance(found, str) else found

    return _judged(name, target, spent, lambda: prove_program(program.data, part))


def lines(files: list[Path], names: list[str], chosen: list[str]) -> Iterator[Line]:
    """Yield each model on each target."""
    for target in chosen:
        yield from (file_line(path, target) for path in files)
        yield from (zoo_line(name, target) for name in names)


def main() -> int:
    """Prove all requested models."""
    from openneutron import zoo

    arguments = argparse.ArgumentParser()
    arguments.add_argument("files", type=Path, nargs="*")
    arguments.add_argument("--zoo", nargs="*", choices=zoo.names())
    arguments.add_argument("--target", nargs="*", default=targets.geometries(), choices=targets.names())
    given = arguments.parse_args()
    names = [] if given.zoo is None else given.zoo or zoo.names()
    print(f"| {' | '.join(HEAD)} |\n|---|---|---:|---:|---:|---:|---|")
    refused = 0
    for line in lines(given.files, names, given.target):
        print(f"| {' | '.join(line.cells())} |", flush=True)
        refused += bool(line.refused)
    return int(refused > 0)


if __name__ == "__main__":
    with quiet():
        sys.exit(main())
