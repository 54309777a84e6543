"""Compile a fixed list of networks for every chip and write what became of them to docs/models.md.

Each network is a process of its own, so that a crash is a row and not the end. Results are kept in build/models.jsonl: a
second call goes on where the first one stopped, and tries again what crashed. `--sample N` takes every so many networks, N
in all; `--page` only writes the page from the results there are.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.models.libraries import Network, make, networks  # noqa: E402  needs the path above

RESULTS = ROOT / "build" / "models.jsonl"
PAGE = ROOT / "docs" / "models.md"
TARGETS = ("mcxn94x", "imxrt700", "imx95")
LIMIT = 1800  # seconds for one network on all chips
GOOD = 20.0  # decibels, below which a compile warns


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
                "graphs": report.totals.neutron_graphs, "short": [one.memory for one in shortfalls(report)],
                "sqnr": min(quantized.sqnr), "left": dict(left), "seconds": preparing + time.process_time() - began,
            }
        )  # fmt: skip
    return rows


def run_all(chosen: list[Network]) -> None:
    """Every network that has no result yet, in a process of its own."""
    RESULTS.parent.mkdir(exist_ok=True)
    done = {f"{row['library']} {row['name']}" for row in results() if "crash" not in row}
    for network in chosen:
        if network.key in done:
            continue
        print(network.key, flush=True)
        rows = in_a_process(network)
        with RESULTS.open("a", encoding="utf-8") as file:
            # Whoever was stopped while writing may have left half a line.
            file.write("\n" + "\n".join(json.dumps(row) for row in rows) + "\n")
        PAGE.write_text(page(results()), encoding="utf-8")


def in_a_process(network: Network) -> list[dict[str, Any]]:
    """One network's rows; a crash or a hang is a row as well. Processes fork from a server that has torch imported already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.models.preload"])
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(network, theirs))
    process.start()
    theirs.close()
    try:
        if not ours.poll(LIMIT):
            process.kill()
            return _crashed(network, f"took more than {LIMIT} seconds")
        answer: list[dict[str, Any]] | str = ours.recv()
    except EOFError:
        process.join()
        return _crashed(network, f"its process ended with exit status {process.exitcode}")
    process.join()
    return _crashed(network, answer) if isinstance(answer, str) else answer


def _send(network: Network, pipe: Connection) -> None:
    """Runs in the process of its own: rows, or what went wrong."""
    try:
        pipe.send(compile_one(network))
    except Exception as error:  # whatever a network brings to light is its row
        pipe.send(f"{type(error).__name__}: {error}")


def _crashed(network: Network, problem: str) -> list[dict[str, Any]]:
    return [
        {"library": network.library, "name": network.name, "target": target, "crash": problem} for target in TARGETS
    ]


def results() -> list[dict[str, Any]]:
    """What earlier calls found, of each network and chip the latest."""
    if not RESULTS.exists():
        return []
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for line in RESULTS.read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue  # an empty line, or half of one
        found[row["library"], row["name"], row["target"]] = row
    return list(found.values())


def page(rows: list[dict[str, Any]]) -> str:
    """The results as a documentation page."""
    names = {(row["library"], row["name"]) for row in rows}
    total = len(networks())
    lines = [
        "# Models", "",
        "<!-- Written by `make test-models` (tests/models/run.py). Do not edit. -->", "",
        "Classification networks of timm and torchvision with up to 15 million parameters, random weights, at their own "
        "resolution, quantized on two random images and compiled for every chip. "
        f"Of the list's {total} networks {len(names)} have been run; `make test-models` goes on with the rest. "
        "A row is of the day it was run; times and bytes change with every release, so ask `openneutron fits` for those.", "",
        *_summary(rows), "",
        "*On the NPU*: nodes delegated, of all but the quantize and dequantize at the program's border. *Fits*: the open "
        "schedule, which runs in the simulator, with float inputs: RAM, with the weights where the NPU reads no flash, and "
        "flash. *SQNR*: against float on the calibration images; of random weights, so it "
        "says something about the arithmetic only: where untrained values vanish below a step of 2^-20 it is about "
        "0 dB. Below 20 dB `compile` warns.", "",
        "| network | chip | on the NPU | graphs | fits | SQNR |",
        "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for row in sorted(rows, key=lambda row: (row["name"], row["target"])):
        lines.append(_row(row))
    left = _left(rows)
    if left:
        lines += ["", "## Left on the CPU", "", *left]
    return "\n".join(lines) + "\n"


def _summary(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| chip | networks | wholly on the NPU | fit | below 20 dB, warned | refused | crashed |",
        "|---|---|---|---|---|---|---|",
    ]
    for target in TARGETS:
        own = [row for row in rows if row["target"] == target]
        wholly = sum(row.get("delegated", -1) == row.get("nodes") for row in own)
        refused, crashed = (sum(kind in row for row in own) for kind in ("refused", "crash"))
        fit = sum(not row["short"] for row in own if "short" in row)
        low = sum(row["sqnr"] < GOOD for row in own if "sqnr" in row)
        share = f"{wholly} ({wholly / len(own):.0%})" if own else "0"
        lines.append(f"| {target} | {len(own)} | {share} | {fit} | {low} | {refused} | {crashed} |")
    return lines


def _row(row: dict[str, Any]) -> str:
    head = f"| {row['name']} | {row['target']} |"
    problem = row.get("refused") or row.get("crash")
    if problem is not None:
        return f"{head} {'refused' if 'refused' in row else 'crashed'}: {problem.replace('|', '/')[:160]} | | | |"
    fits = f"no: {' and '.join(row['short'])}" if row["short"] else "yes"
    share = row["delegated"] / row["nodes"] if row["nodes"] else 1.0
    return (
        f"{head} {share:.0%}, {row['delegated']} of {row['nodes']} | {row['graphs']} | {fits} | {row['sqnr']:.1f} dB |"
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
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument("--sample", type=int, default=0, help="so many networks, spread over the list; 0: all")
    given = parser.parse_args()
    known = networks()
    if given.one:
        for row in compile_one(next(network for network in known if network.key == given.one)):
            print(json.dumps(row))
        return
    if given.page:
        PAGE.write_text(page(results()), encoding="utf-8")
        return
    step = max(len(known) // given.sample, 1) if given.sample else 1
    run_all(known[::step][: given.sample or None])


if __name__ == "__main__":
    main()
