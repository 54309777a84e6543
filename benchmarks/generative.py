"""Speech networks compiled for every chip: the table of docs/generative-models.md.

    python benchmarks/generative.py                 all of them
    python benchmarks/generative.py vocoder flow    some

Networks of `speech_networks.py` with random weights and 16-bit activations. Cycles are those of the open schedule in the
machine model, which the simulator follows; they are no measurement of a board.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

CHIPS = ("mcxn94x", "imxrt700", "imx95")
PAGE = ROOT / "docs" / "generative-models.md"
HEADER = ("network", "parameters", "chip", "graphs", "SQNR", "flash", "SRAM", "cycles")


@dataclass(frozen=True)
class Row:
    """One network on one chip; sizes are bytes."""

    network: str
    parameters: int
    chip: str
    graphs: int
    sqnr: float
    flash: int
    sram: int
    cycles: int

    def cells(self) -> tuple[str, ...]:
        """The row as it is in the page."""
        counts = (self.parameters, self.chip, self.graphs, f"{self.sqnr:.1f} dB", self.flash, self.sram, self.cycles)
        return (self.network, *(f"{one:,}" if isinstance(one, int) else one for one in counts))


def measure(name: str, chip: str) -> Row:
    """Compile a network for a chip."""
    import openneutron as on
    from benchmarks.speech_networks import NETWORKS

    network = NETWORKS[name]()
    program = on.compile(
        network.module,
        network.inputs,
        calibration=network.calibration,
        activations="int16",
        quality="plain",
        target=chip,
    )
    report, totals = program.report, program.report.totals
    return Row(
        name, sum(one.numel() for one in network.module.parameters()), chip, totals.neutron_graphs,
        report.output_sqnr or 0.0, totals.weight_bytes + totals.microcode_bytes, totals.arena_bytes + totals.context_bytes,
        totals.cycles,
    )  # fmt: skip


def main() -> None:
    from benchmarks.speech_networks import NETWORKS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NAME")
    given = parser.parse_args()
    if unknown := sorted(set(given.networks) - set(NETWORKS)):
        parser.error(f"{unknown[0]!r} is none of {', '.join(NETWORKS)}")
    print(f"| {' | '.join(HEADER)} |\n|{'---|' * len(HEADER)}")
    for name in given.networks or NETWORKS:
        for chip in CHIPS:
            print(f"| {' | '.join(measure(name, chip).cells())} |", flush=True)


if __name__ == "__main__":
    main()
