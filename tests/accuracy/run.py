"""Measure the accuracy of trained networks and write docs/accuracy-table.md.

Each network is a process of its own with a limit of time and of memory, so that a crash is a row and not the end. Results
are kept in tests/accuracy/results.jsonl, two lines a network: a second call goes on where the first one stopped, and tries
again what failed. `--again` measures everything anew, `--only WORD` those whose names have the word, `--page` only writes the
page.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from openneutron.files import write_file  # noqa: E402
from tests.accuracy.measure import VARIANTS, measure  # noqa: E402  needs the path above
from tests.accuracy.networks import NETWORKS, Network  # noqa: E402
from tests.accuracy.packages import fetch  # noqa: E402
from tests.accuracy.page import page, silent_parts, summary  # noqa: E402

RESULTS = Path(__file__).with_name("results.jsonl")
PAGE = ROOT / "docs" / "accuracy-table.md"
SECONDS = 1800  # for one network
MEMORY = 8 << 30  # bytes of one network's process
_PACKAGES = ("torch", "executorch", "torchao", "onnxruntime", "ai-edge-litert", "ai-edge-quantizer")

Row = dict[str, Any]


def run_all(chosen: Sequence[Network], measured: Callable[[Network], list[Row]], *, again: bool = False) -> list[Row]:
    """Measure every network that has no result yet; all rows that there are then."""
    done = set() if again else {row["network"] for row in results() if "failed" not in row}
    for at, network in enumerate(chosen, 1):
        print(f"[{at}/{len(chosen)}] {network.name}", end="", flush=True)
        if network.name in done:
            print(": measured before")
            continue
        rows = measured(network)
        keep(rows)
        print(f": {_short(rows[-1])}", flush=True)
    return results()


def keep(rows: Sequence[Row]) -> None:
    """Store rows in place of older ones, in the order of the networks: lines of others do not change."""
    order = {one.name: at for at, one in enumerate(NETWORKS)}
    found = {(row["network"], row["variant"]): row for row in [*results(), *rows]}
    lines = [json.dumps(row) for row in sorted(found.values(), key=lambda row: order.get(row["network"], len(order)))]
    write_file(RESULTS, "\n".join(lines) + "\n")


def results() -> list[Row]:
    """What earlier calls measured, of each network and variant the latest."""
    if not RESULTS.exists():
        return []
    found: dict[tuple[str, str], Row] = {}
    for line in RESULTS.read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue  # an empty line, or half of one
        found[row["network"], row["variant"]] = row
    return list(found.values())


def in_a_process(network: Network, *, seconds: float = SECONDS, memory: int = MEMORY) -> list[Row]:
    """One network's rows, measured in another process; how that ended where it did not get there.

    Processes fork from a server that has torch imported already.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.accuracy.preload"])
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(network.name, theirs))
    process.start()
    theirs.close()
    problem = _watch(process, ours, seconds, memory)
    if not problem:
        try:
            answer: list[Row] | str = ours.recv()
        except EOFError:
            process.join()
            answer = f"its process ended with status {process.exitcode}"
        if isinstance(answer, list):
            process.join()
            return answer
        problem = answer
    process.join()
    return [{"network": network.name, "variant": one.name, "options": {}, "failed": problem} for one in VARIANTS]


def _send(name: str, pipe: Connection) -> None:
    """Runs in the process of its own: rows, or what went wrong."""
    try:
        pipe.send(measure(next(one for one in NETWORKS if one.name == name)))
    except Exception as error:  # what a network brings to light is its row
        place = traceback.extract_tb(error.__traceback__)[-1]
        pipe.send(f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})")


def _watch(process: Any, answer: Connection, seconds: float, memory: int) -> str:
    """Wait for a process's answer or its end; a sentence where it went over a limit and was ended, else nothing."""
    end = time.monotonic() + seconds
    while not answer.poll(0.2):
        used = _resident(process.pid)
        if time.monotonic() > end or used > memory:
            process.kill()
            return f"took more than {memory >> 30} GiB" if used > memory else f"took more than {seconds:.0f} seconds"
    return ""


def _resident(pid: int) -> int:
    """The memory that a process holds, in bytes; 0 once it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text("utf-8")
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS")), 0)


def _short(row: Row) -> str:
    if "parts" not in row:
        return str(row.get("refused") or row.get("failed"))
    worst = min((one["sqnr"] for one in row["parts"]), default=float("nan"))
    silent = silent_parts(row)
    task = f", {row['metric']} {row['float']:.1%} to {row['int8']:.1%}" if "int8" in row else ""
    return f"{worst:.1f} dB{task}, {row['cycles']:,} cycles" + (f", silent: {', '.join(silent)}" if silent else "")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="networks whose names have this word")
    parser.add_argument("--again", action="store_true", help="measure what has results, too")
    parser.add_argument("--page", action="store_true", help="only write the page")
    given = parser.parse_args()
    rows = results()
    if not given.page:
        fetch()
        named = [one for one in NETWORKS if given.only.lower() in one.name.lower()]
        chosen = sorted(named, key=lambda one: one.path.stat().st_size if one.path.is_file() else 0)  # cheapest first
        rows = run_all(chosen, in_a_process, again=given.again)
    versions = {"Python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}
    PAGE.write_text(page(rows, NETWORKS, versions), encoding="utf-8")
    print("\n".join(summary(rows).lines()))


if __name__ == "__main__":
    main()
