"""A decoder's perplexity, size and speed in each precision, and simulated tokens/s against plain PyTorch.

    python benchmarks/decoder.py                         every precision of the zoo's story decoder
    python benchmarks/decoder.py --only default int4     some of them
    python benchmarks/decoder.py --rows 2                fewer test sequences
    python benchmarks/decoder.py --rows 4 --page         the table of docs/language-models.md

Perplexity is that of the delivered `.pte`, token by token with its cache, on test sequences that neither training nor
calibration saw. The ratio of speeds is measured in one process and on one thread, in turns: the compiled program in the
simulator against the float module. It says how long simulating takes on this machine, and nothing about a board.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

PRECISIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "int8": {"quality": "plain"},
    "int16": {"activations": "int16"},
    "int4": {"activations": "int16", "weights": "int4", "group_size": 32},
}
MEANING = {
    "default": "mixed: 16-bit activations except around products with weights",
    "int8": "8-bit activations and weights",
    "int16": "16-bit activations, 8-bit weights (16a8w)",
    "int4": "16-bit activations, 4-bit weights in groups of 32",
}
CALIBRATION_ROWS = 2
_PAGE = range(6)  # the columns from the form to the cycles
TURN = 32  # tokens of a contestant at a time


def main(arguments: list[str] | None = None) -> int:
    """Compile, measure and print the tables."""
    os.environ["OPENNEUTRON_THREADS"] = "1"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--page", action="store_true", help="print the table of docs/language-models.md")
    given = parser.parse_args(arguments)
    rows = tables(given.only, given.rows)
    if given.page:
        print("\n".join(page_lines(rows)))
        return 0
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for name in given.only:
        print(f"{name}: {MEANING[name]}")
    return 0


def tables(names: list[str], count: int) -> list[tuple[str, ...]]:
    """Return the rows of the table, the headings first."""
    import torch

    import openneutron as on
    from openneutron.executorch.run.decoder import decoder_of, module_decoder
    from openneutron.executorch.run.runtime import load_program
    from openneutron.language.perplexity import measure

    torch.set_num_threads(1)
    model = on.zoo.load("story_decoder")
    rows = list(model.test_sequences)[:count]
    calibration = model.calibration[: CALIBRATION_ROWS * len(rows[0])]
    found = [
        (
            "form",
            "perplexity",
            "x float",
            "same answer",
            "bytes of weights",
            "cycles/token",
            "graphs",
            "CPU",
            "x PyTorch's speed",
        )
    ]
    floating = None
    for name in names:
        program = on.compile(model.model, model.example_inputs, calibration=calibration, name=name, **PRECISIONS[name])
        compiled = decoder_of(load_program(program.pte), name)
        module = module_decoder(model.model, model.example_inputs, compiled)
        if floating is None:
            floating = measure("float", module, rows)
            found.append(("float", f"{floating.perplexity:.3f}", "1.000", "100.0 %", "", "", "", "", "1.00"))
        score = measure(name, compiled, rows)
        report = program.report
        left = [
            node
            for node in report.nodes
            if not node.delegated and not node.operator.startswith("quantized_decomposed.")
        ]
        found.append((
            name, f"{score.perplexity:.3f}", f"{score.ratio(floating):.3f}", f"{100 * score.agreement(floating):.1f} %",
            f"{report.totals.weight_bytes:,}", f"{report.totals.cycles:,}", str(report.totals.neutron_graphs), str(len(left)),
            f"{_speed(module, compiled, rows[0]):.2f}",
        ))  # fmt: skip
    return found


def page_lines(rows: list[tuple[str, ...]]) -> list[str]:
    """Return the table of the page: the columns that are the same on every machine."""
    headings, *found = ([row[at] for at in _PAGE] for row in rows)
    return [f"| {' | '.join(row)} |" for row in (headings, ["---"] * len(headings), *found)]


def _speed(module: Any, compiled: Any, row: Any) -> float:
    """Return how many times as many tokens as the float module the compiled program takes in a second."""
    from benchmarks.timing import interleaved

    def run(decoder: Any) -> None:
        decoder.position = 0  # what an earlier turn has left in the cache is masked
        decoder.feed(list(row[:TURN]))

    taken = interleaved({"float": lambda: run(module), "ours": lambda: run(compiled)}, runs=9)
    return taken["float"] / taken["ours"]


if __name__ == "__main__":
    sys.exit(main())
