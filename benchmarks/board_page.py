"""Write the tables of docs/board.md: the zoo on all three chips, both columns, and what silicon's rounding costs.

python benchmarks/board_page.py                       the reference networks
python benchmarks/board_page.py cifarnet              prints the rows of these zoo models, exported from PyTorch
python benchmarks/board_page.py --write cifarnet      and puts them into the page, in place of those it has
python benchmarks/board_page.py --rounding cifarnet   the same for their accuracy by rounding
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.board_networks import BOARD_NETWORKS  # noqa: E402
from openneutron.analyze.data.source import Data  # noqa: E402
from openneutron.analyze.fits import CpuPart, Need, needs  # noqa: E402
from openneutron.analyze.sharded import score_shards  # noqa: E402
from openneutron.cli.evaluate import build_forms_quietly  # noqa: E402
from openneutron.cli.inputs.loading import compile_source  # noqa: E402
from openneutron.cli.shared.reporting import litert_models  # noqa: E402
from openneutron.machine import targets  # noqa: E402
from openneutron.report.latency import latency  # noqa: E402

PAGE = ROOT / "docs/board.md"
COMPILED_FOR = "imxrt700"  # programs are partitioned once, for this target
REFERENCE = ("autoencoder", "cifarnet", "ds_cnn", "ds_cnn_s", "resnet8", "vww", "mobilenet_v1_025_128")
IMAGES = 1000  # of the package's test set
ZOO_HEAD = (
    "| model | chip | NXP's converter: memory | flash | latency | open schedule: memory | flash | latency |",
    "|---|---|---|---|---|---|---|---|",
)
ROUNDING_HEAD = (
    "| model | float | compiled, exact | silicon's rounding | same answer as float: exact | silicon |",
    "|---|---|---|---|---|---|",
)


def _cells(need: Need) -> str:
    time = latency(need.milliseconds, need.milliseconds_low, need.milliseconds_high)
    return f"{need.sram_bytes:,} | {need.flash_bytes:,} | {time}"


def reference_rows() -> Iterator[str]:
    """A row for each reference network and chip."""
    for name in REFERENCE:
        for target in targets.chips():
            stock, ours = needs([BOARD_NETWORKS[name]()], target, source=name)
            yield f"| {name} | {target} | {_cells(stock)} | {_cells(ours)} |"


def zoo_rows(names: Sequence[str]) -> Iterator[str]:
    """A row for each model and chip."""
    for name in names:
        program, loaded = compile_source(name, lambda text: None, target=COMPILED_FOR, dump_intermediates=True)
        models = litert_models(program, loaded)
        for target in targets.chips():
            around = CpuPart(program.report.whole, COMPILED_FOR)
            stock, ours = needs(models, target, around=around, source=name)
            yield f"| {name} | {target} | {_cells(stock)} | {_cells(ours)} |"


def rounding_rows(names: Sequence[str]) -> Iterator[str]:
    """A row for each trained model, weights per channel: accuracy with exact and with silicon's rounding."""
    for name in names:
        forms, images = build_forms_quietly(name, Data(None, IMAGES), target=COMPILED_FOR, silicon=True)
        first, _, exact, board = score_shards(forms, images, limit=IMAGES).scores
        agree = f"{exact.agreement(first):.1%} | {board.agreement(first):.1%}"
        yield f"| {name} | {first.accuracy:.1%} | {exact.accuracy:.1%} | {board.accuracy:.1%} | {agree} |"


def replaced(page: str, name: str, lines: Sequence[str]) -> str:
    """Return the page with the table between its two marks replaced."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    found = re.subn(f"{begin}.*?{end}", lambda _: "\n".join((begin, "", *lines, "", end)), page, flags=re.DOTALL)
    assert found[1] == 1, f"{PAGE} has no table {name}"
    return found[0]


def table(name: str, page: str = "") -> str:
    """Return a table of the page."""
    found = re.search(f"<!-- {name} -->(.*?)<!-- end of {name} -->", page or PAGE.read_text("utf-8"), flags=re.DOTALL)
    assert found is not None, f"{PAGE} has no table {name}"
    return found[1]


def merged(page: str, name: str, head: Sequence[str], rows: Sequence[str]) -> str:
    """Return the page with these rows in a table; rows of other models stay."""
    new = {_model(row) for row in rows}
    kept = [
        row
        for row in table(name, page).split("\n")
        if row.startswith("| ") and row not in head and _model(row) not in new
    ]
    return replaced(page, name, (*head, *sorted((*kept, *rows), key=_model)))


def _model(row: str) -> str:
    return row.split("|")[1].strip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or print the rows of some models."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("models", nargs="*", help="rows of these zoo models instead")
    parser.add_argument("--rounding", action="store_true", help="print their accuracy by rounding")
    parser.add_argument("--write", action="store_true", help="and put the rows into the page")
    given = parser.parse_args(arguments)
    if given.models:
        name, head, rows = ("rounding", ROUNDING_HEAD, rounding_rows) if given.rounding else ("zoo", ZOO_HEAD, zoo_rows)
        made = list(rows(given.models))
        print("\n".join((*head, *made)))
        if given.write:
            PAGE.write_text(merged(PAGE.read_text("utf-8"), name, head, made), "utf-8")
        return 0
    page = replaced(PAGE.read_text("utf-8"), "reference", (*ZOO_HEAD, *reference_rows()))
    PAGE.write_text(page, "utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
