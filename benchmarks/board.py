"""Check the board estimates against all public figures, one line per goal.

    python benchmarks/board.py              networks rebuilt in code
    python benchmarks/board.py FOLDER       also the real files there: NAME.tflite with NAME_converted_by_nxp.tflite beside it

Goals, each with the rules of the file's version: scratch and kernel calls equal, weights within 5 %, microcode within 10 %,
kernels equal, arenas and prefetch within 256 bytes, leave-one-out within 6 % in the mean and 12 % at worst, every published
latency inside its left-out interval, a median interval no wider than 15 %, and on i.MX 95 an NPU time below that of the whole
systems. Without goals: each file predicted by rules that its own network did not show.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.board_networks import BOARD_NETWORKS  # noqa: E402
from benchmarks.calibrate import (  # noqa: E402
    INTERVAL_WITHIN,
    MEAN_WITHIN,
    WORST_WITHIN,
    left_out,
    left_out_widths,
    workload,
)
from benchmarks.networks import NETWORKS  # noqa: E402
from benchmarks.published import ARENAS, EXECUTORCH_BYTES, HEADERS, IMX95_AT_MOST, POINTS  # noqa: E402
from benchmarks.yolo import yolov5n, yolov8s_seg  # noqa: E402
from openneutron.board.answer import converted_by_stock, stock_answer  # noqa: E402
from openneutron.board.flash import microcode_bytes  # noqa: E402
from openneutron.board.sdk import rules  # noqa: E402
from openneutron.litert.read import read_model  # noqa: E402
from openneutron.machine import targets  # noqa: E402
from openneutron.microcode.container import graphs_of  # noqa: E402

CONVERTED = "_converted_by_nxp.tflite"
ARENA_WITHIN, WEIGHTS_WITHIN, MICROCODE_WITHIN = 256, 0.05, 0.10


def headers() -> Iterator[tuple[str, bool]]:
    """Compare scratch, calls and sizes with the headers of files that NXP's converter made, by the rules of its version."""
    for h in HEADERS:
        answer = stock_answer(BOARD_NETWORKS[h.network](), targets.load(h.target), sdk=h.version)
        calls = answer.kernel_calls if h.kernel_calls else 0
        exact = (answer.scratch_bytes, calls, answer.kernel_bytes) == (h.scratch_bytes, h.kernel_calls, h.kernel_bytes)
        weights, microcode = answer.weight_bytes / h.weight_bytes - 1, answer.microcode_bytes / h.microcode_bytes - 1
        kernels = f"  kernels {answer.kernel_bytes:,} of {h.kernel_bytes:,}" if h.kernel_bytes else ""
        yield (
            f"{h.version:11} {h.target:9} {h.network:20} scratch {answer.scratch_bytes:>7,} of {h.scratch_bytes:>7,}  "
            f"calls {answer.kernel_calls:2} of {h.kernel_calls or '-':2}  weights {answer.weight_bytes:>7,} of "
            f"{h.weight_bytes:>7,} ({weights:+.1%})  microcode {answer.microcode_bytes:,} of {h.microcode_bytes:,} "
            f"({microcode:+.1%}){kernels}",
            exact and abs(weights) <= WEIGHTS_WITHIN and abs(microcode) <= MICROCODE_WITHIN,
        )


def headers_left_out() -> Iterator[tuple[str, tuple[bool, ...]]]:
    """Predict each file by rules that its network's files did not show: what to expect of a new network or version.

    Rules that no other file shows are left out, and the bytes of microcode of version 1.2 are fitted without the network. What
    two files of imxrt2660 determine together (weights, microcode, kernels) stays. The flags are scratch, calls, weights and
    microcode within the goals.
    """
    for h in HEADERS:
        by = rules(h.target, h.version, without=h.network)
        if by.microcode == rules("mcxn94x", "1.2").microcode:
            by = by._replace(microcode=fit_microcode(without=h.network))
        answer = stock_answer(BOARD_NETWORKS[h.network](), targets.load(h.target), by=by)
        calls = answer.kernel_calls - h.kernel_calls if h.kernel_calls else 0
        scratch = answer.scratch_bytes - h.scratch_bytes
        weights, microcode = answer.weight_bytes / h.weight_bytes - 1, answer.microcode_bytes / h.microcode_bytes - 1
        yield (
            f"{h.version:11} {h.target:9} {h.network:20} left out: scratch {scratch:+,}  calls {calls:+}  weights "
            f"{weights:+.1%}  microcode {microcode:+.1%}",
            (not scratch, not calls, abs(weights) <= WEIGHTS_WITHIN, abs(microcode) <= MICROCODE_WITHIN),
        )


def fit_microcode(*, without: str) -> tuple[float, ...]:
    """Return the microcode's rule of version 1.2, fitted on the files of all networks but one."""
    rows, sizes = [], []
    for h in HEADERS:
        if h.network == without or not h.version.startswith("1.2"):
            continue
        by, target = rules(h.target, h.version), targets.load(h.target)
        made = converted_by_stock(BOARD_NETWORKS[h.network](), target, by=by)
        (plan,), (group,) = made.plans, made.groups
        operators = [made.graph.operators[index] for index in group]
        units = np.eye(len(by.microcode)).tolist()
        rows.append([microcode_bytes(plan.calls, made.graph, operators, by._replace(microcode=unit)) for unit in units])
        sizes.append(h.microcode_bytes)
    found, *_ = np.linalg.lstsq(np.array(rows, np.float64), np.array(sizes, np.float64), rcond=None)
    return tuple(map(float, found))


def arenas() -> Iterator[tuple[str, bool]]:
    """Compare TFLM's arena, and the memory that weights are fetched to, with readmes of NXP's SDK."""
    for one in ARENAS:
        answer = stock_answer(
            BOARD_NETWORKS[one.network](), targets.load("imxrt700"), fetch_constants=one.prefetch_bytes > 0, sdk=one.sdk
        )
        pairs = [("arena", answer.arena_bytes, one.arena_bytes)]
        if one.prefetch_bytes:
            pairs.append(("prefetch", answer.prefetch_bytes, one.prefetch_bytes))
        for word, found, published in pairs:
            off = found - published
            yield (
                f"{one.sdk:11} imxrt700  {one.network:20} {word} {found:>9,} of {published:>9,} ({off:+,} bytes)",
                abs(off) <= ARENA_WITHIN,
            )


def executorch() -> Iterator[tuple[str, bool]]:
    """Compare ExecuTorch's planned memory and method allocator with a readme of NXP's SDK."""
    for network, published in EXECUTORCH_BYTES.items():
        answer = stock_answer(BOARD_NETWORKS[network](), targets.load("imxrt700"), sdk="3.1")
        found = (answer.planned_bytes, answer.method_bytes)
        for word, one, wanted in zip(("planned", "method"), found, published, strict=True):
            yield f"3.1         imxrt700  {network:20} {word} {one:,} of {wanted:,}", abs(one - wanted) <= ARENA_WITHIN


def latencies() -> Iterator[tuple[str, bool]]:
    """Predict each published latency by a fit on all others."""
    loads = [workload(point) for point in POINTS]
    found = left_out(loads)
    widths = left_out_widths(found)
    for load, (error, _), width in zip(loads, found, widths, strict=True):
        p = load.point
        predicted = p.milliseconds * (1 + error)
        low, high = predicted / math.exp(width), predicted * math.exp(width)
        yield (
            f"{p.target:9} {p.network:21} {p.milliseconds:8.3f} ms published, left out {predicted:8.3f} ms, "
            f"{low:.3f} to {high:.3f} ({error:+.1%})",
            low <= p.milliseconds <= high,
        )
    sizes = np.abs([one.error for one in found])
    yield (
        f"left out: mean {sizes.mean():.1%}, worst {sizes.max():.1%}",
        bool(sizes.mean() <= MEAN_WITHIN and sizes.max() <= WORST_WITHIN),
    )
    median = math.exp(float(np.median(widths)))
    yield f"median interval: times or by {median:.3f}", median <= INTERVAL_WITHIN


def bounds() -> Iterator[tuple[str, bool]]:
    """Compare the NPU time on an i.MX 95 with published times of whole systems."""
    networks = {"mobilenet_v2": NETWORKS["mobilenet_v2"], "yolov5n": yolov5n, "yolov8s_seg": yolov8s_seg}
    for network, system in IMX95_AT_MOST.items():
        found = stock_answer(networks[network](), targets.load("imx95")).npu_milliseconds
        yield f"imx95     {network:21} {found:8.3f} ms for the NPU alone, at most {system:.3f} ms", found <= system


def files(folder: Path) -> Iterator[tuple[str, bool]]:
    """Compare real pairs of files: a model and the result of NXP's converter."""
    for converted in sorted(folder.glob(f"*{CONVERTED}")):
        stem = converted.name.removesuffix(CONVERTED)
        sources = [path for path in (folder / f"{stem}.tflite", folder / f"{stem}_int8.tflite") if path.is_file()]
        if not sources:
            continue
        graphs = [c for _, c in graphs_of(read_model(converted.read_bytes(), source=converted.name))]
        answer = stock_answer(sources[0].read_bytes(), targets.load("mcxn94x"), source=sources[0].name, sdk="2.x")
        scratch = max((graph.scratch_bytes for graph in graphs), default=0)
        weights = sum(graph.weights_bytes for graph in graphs)
        off = answer.weight_bytes / weights - 1 if weights else 0.0
        yield (
            f"file      {stem:21} scratch {answer.scratch_bytes:>9,} of {scratch:>9,}  graphs {answer.graphs} of "
            f"{len(graphs)}  weights {answer.weight_bytes:>9,} of {weights:>9,} ({off:+.1%})",
            answer.scratch_bytes == scratch and answer.graphs == len(graphs),
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print every line with whether its goal is met; the exit code is 1 if one is not."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, help="a folder with real files")
    given = parser.parse_args(arguments)
    missed = 0
    parts = [headers(), arenas(), executorch(), latencies(), bounds()]
    if given.folder is not None:
        parts.append(files(given.folder))
    for part in parts:
        for line, met in part:
            missed += not met
            print(f"{'met   ' if met else 'MISSED'}  {line}")
    print(
        "\nFiles predicted by rules that their own network did not show (no goals: rules were chosen with the files in view)"
    )
    held = []
    for line, within in headers_left_out():
        held.append(within)
        print(f"{'holds ' if all(within) else 'off   '}  {line}")
    scratch, calls, weights, microcode = (sum(column) for column in zip(*held, strict=True))
    print(
        f"        of {len(held)} files: scratch equal {scratch}, calls equal {calls}, weights within {WEIGHTS_WITHIN:.0%} "
        f"{weights}, microcode within {MICROCODE_WITHIN:.0%} {microcode}"
    )
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
