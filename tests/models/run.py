"""Compile a fixed list of networks for every chip and write what became of them to docs/models.md.

Each network is a process of its own, so that a crash is a row and not the end. Results are kept in build/models.jsonl: a
second call goes on where the first one stopped. `--sample N` takes every so many networks, N in all.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.models.libraries import Network, make, networks  # noqa: E402  needs the path above

RESULTS = ROOT / "build" / "models.jsonl"
PAGE = ROOT / "docs" / "models.md"
TARGETS = ("mcxn94x", "imxrt700", "imx95")
LIMIT = 1800  # seconds for one network on all chips


def compile_one(network: Network) -> list[dict[str, Any]]:
    """Quantize once, compile for every chip: one row each."""
    import torch

    import openneutron as on
    from openneutron.errors import OpenNeutronError
    from openneutron.executorch.pipeline import quantize
    from openneutron.report.fits import shortfalls

    torch.manual_seed(1)
    samples = [(torch.randn(1, 3, network.pixels, network.pixels),) for _ in range(2)]
    base: dict[str, Any] = {"library": network.library, "name": network.name}
    began = time.process_time()
    try:
        quantized = quantize(make(network), samples[0], samples)
    except OpenNeutronError as error:
        return [{**base, "target": target, "refused": str(error)} for target in TARGETS]
    preparing = time.process_time() - began
    rows = []
    for target in TARGETS:
        began = time.process_time()
        try:
            report = on.compile(quantized.program, target=target, name=network.name).report
        except OpenNeutronError as error:
            rows.append({**base, "target": target, "refused": str(error)})
            continue
        own = [node for node in report.nodes if node.code != "border"]
        left = Counter(f"{node.operator}: {node.code}" for node in own if not node.delegated)
        rows.append(
            {
                **base, "target": target, "nodes": len(own), "delegated": sum(node.delegated for node in own),
                "graphs": report.totals.neutron_graphs, "timed": report.whole.timed,
                "milliseconds": report.whole.milliseconds if report.whole.timed else report.totals.milliseconds,
                "low": report.whole.milliseconds_low, "high": report.whole.milliseconds_high,
                "largest_graph": report.totals.peak_bytes, "memory": report.whole.memory_bytes,
                "flash": report.files["pte"], "short": [one.memory for one in shortfalls(report)],
                "sqnr": min(quantized.sqnr), "left": dict(left), "seconds": preparing + time.process_time() - began,
            }
        )  # fmt: skip
    return rows


def run_all(chosen: list[Network]) -> None:
    """Every network that has no result yet, in a process of its own."""
    RESULTS.parent.mkdir(exist_ok=True)
    done = {f"{row['library']} {row['name']}" for row in results()}
    for network in chosen:
        if network.key in done:
            continue
        print(network.key, flush=True)
        command = [sys.executable, __file__, "--one", network.key]
        try:
            made = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
            rows = made.stdout.splitlines()[-len(TARGETS) :] if made.returncode == 0 else []
            problem = (made.stderr.strip().splitlines() or ["no message"])[-1]
        except subprocess.TimeoutExpired:
            rows, problem = [], f"took more than {LIMIT} seconds"
        if not rows:
            rows = [
                json.dumps({"library": network.library, "name": network.name, "target": t, "crash": problem})
                for t in TARGETS
            ]
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write("\n".join(rows) + "\n")
        PAGE.write_text(page(results()), encoding="utf-8")


def results() -> list[dict[str, Any]]:
    """What earlier calls found."""
    if not RESULTS.exists():
        return []
    return [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]


def page(rows: list[dict[str, Any]]) -> str:
    """The results as a documentation page."""
    names = {(row["library"], row["name"]) for row in rows}
    total = len(networks())
    lines = [
        "# Models", "",
        "<!-- Written by `make test-models` (tests/models/run.py). Do not edit. -->", "",
        "Classification networks of timm and torchvision with up to 15 million parameters, random weights, at their own "
        "resolution, quantized on two random images and compiled for every chip. "
        f"Of the list's {total} networks {len(names)} have been run; `make test-models` goes on with the rest.", "",
        *_summary(rows), "",
        "*Nodes*: delegated of all, without the quantize and dequantize at the program's border. *ms*: the whole program, "
        "estimated; on imx95, whose CPU has no model, the NPU alone. *RAM*: ExecuTorch's arena and what delegates allocate, "
        "with float inputs; bold where it does not fit. *SQNR*: against float on the calibration images; of random weights, "
        "so a lower bound for nothing but the arithmetic.", "",
        "| network | chip | nodes | graphs | ms | largest graph | RAM | flash | SQNR |",
        "|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for row in sorted(rows, key=lambda row: (row["name"], row["target"])):
        lines.append(_row(row))
    left = _left(rows)
    if left:
        lines += ["", "## Left on the CPU", "", *left]
    return "\n".join(lines) + "\n"


def _summary(rows: list[dict[str, Any]]) -> list[str]:
    lines = ["| chip | networks | wholly on the NPU | refused | crashed |", "|---|---|---|---|---|"]
    for target in TARGETS:
        own = [row for row in rows if row["target"] == target]
        wholly = sum(row.get("delegated", -1) == row.get("nodes") for row in own)
        refused, crashed = (sum(kind in row for row in own) for kind in ("refused", "crash"))
        lines.append(f"| {target} | {len(own)} | {wholly} | {refused} | {crashed} |")
    return lines


def _row(row: dict[str, Any]) -> str:
    head = f"| {row['name']} | {row['target']} |"
    problem = row.get("refused") or row.get("crash")
    if problem is not None:
        return f"{head} {'refused' if 'refused' in row else 'crashed'}: {problem.replace('|', '/')[:160]} | | | | | | |"
    between = f" ({row['low']:.3g} to {row['high']:.3g})" if row["high"] else ""
    ram, flash = f"{row['memory']:,}", f"{row['flash']:,}"
    ram = f"**{ram}**" if "RAM" in row["short"] else ram
    flash = f"**{flash}**" if "flash" in row["short"] else flash
    return (
        f"{head} {row['delegated']} of {row['nodes']} | {row['graphs']} | {row['milliseconds']:.3g}{between} | "
        f"{row['largest_graph']:,} | {ram} | {flash} | {row['sqnr']:.1f} dB |"
    )


def _left(rows: list[dict[str, Any]]) -> list[str]:
    lines = []
    for row in sorted(rows, key=lambda row: (row["name"], row["target"])):
        if row.get("left"):
            shown = ", ".join(
                f"{what} ({count})" for what, count in sorted(row["left"].items()) if "quantize" not in what
            )
            lines.append(f"- {row['name']}, {row['target']}: {shown}")
    return lines


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", help="compile this network and print its rows")
    parser.add_argument("--sample", type=int, default=0, help="so many networks, spread over the list; 0: all")
    given = parser.parse_args()
    known = networks()
    if given.one:
        for row in compile_one(next(network for network in known if network.key == given.one)):
            print(json.dumps(row))
        return
    step = max(len(known) // given.sample, 1) if given.sample else 1
    run_all(known[::step][: given.sample or None])


if __name__ == "__main__":
    main()
