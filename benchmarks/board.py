"""Check the board estimates against all public figures, one line per goal.

    python benchmarks/board.py              networks rebuilt in code
    python benchmarks/board.py FOLDER       also the real files there: NAME.tflite with NAME_converted_by_nxp.tflite beside it

Goals: scratch equal to the byte, arenas within 256 bytes, weights within 5 %, leave-one-out within 8 % in the mean and 20 % at
worst, every published latency inside its left-out interval, a median interval no wider than 20 %, and on i.MX 95 an NPU time
below that of the whole systems.
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
from benchmarks.calibrate import left_out, left_out_widths, workload  # noqa: E402
from benchmarks.networks import NETWORKS  # noqa: E402
from benchmarks.published import ARENA_BYTES, HEADERS, IMX95_AT_MOST, POINTS  # noqa: E402
from benchmarks.yolo import yolov5n, yolov8s_seg  # noqa: E402
from openneutron.board.answer import stock_answer  # noqa: E402
from openneutron.litert.read import read_model  # noqa: E402
from openneutron.machine import targets  # noqa: E402
from openneutron.microcode.container import graphs_of  # noqa: E402

CONVERTED = "_converted_by_nxp.tflite"
ARENA_WITHIN, WEIGHTS_WITHIN = 256, 0.05
MEAN_WITHIN, WORST_WITHIN, INTERVAL_WITHIN = 0.08, 0.20, 1.20


def headers() -> Iterator[tuple[str, bool]]:
    """Compare scratch, calls and weights with the headers of files that NXP's converter made."""
    for header in HEADERS:
        answer = stock_answer(BOARD_NETWORKS[header.network](), targets.load(header.target))
        exact = (answer.scratch_bytes, answer.kernel_calls) == (header.scratch_bytes, header.kernel_calls)
        off = answer.weight_bytes / header.weight_bytes - 1
        yield (
            f"{header.target:9} {header.network:21} scratch {answer.scratch_bytes:>9,} of {header.scratch_bytes:>9,}  "
            f"calls {answer.kernel_calls:3} of {header.kernel_calls:3}  weights {answer.weight_bytes:>9,} of "
            f"{header.weight_bytes:>9,} ({off:+.1%})  microcode {answer.microcode_bytes:,} of {header.microcode_bytes:,}",
            exact and abs(off) <= WEIGHTS_WITHIN,
        )


def arenas() -> Iterator[tuple[str, bool]]:
    """Compare TFLM's arena with readmes of NXP's SDK."""
    for network, published in ARENA_BYTES.items():
        found = stock_answer(BOARD_NETWORKS[network](), targets.load("imxrt700")).arena_bytes
        off = found - published
        yield f"imxrt700  {network:21} arena {found:>9,} of {published:>9,} ({off:+,} bytes)", abs(off) <= ARENA_WITHIN


def latencies() -> Iterator[tuple[str, bool]]:
    """Predict each published latency by a fit on all others."""
    loads = [workload(point) for point in POINTS]
    errors = left_out(loads)
    widths = left_out_widths(errors)
    for load, error, width in zip(loads, errors, widths, strict=True):
        p = load.point
        predicted = p.milliseconds * (1 + error)
        low, high = predicted / math.exp(width), predicted * math.exp(width)
        yield (
            f"{p.target:9} {p.network:21} {p.milliseconds:8.3f} ms published, left out {predicted:8.3f} ms, "
            f"{low:.3f} to {high:.3f} ({error:+.1%})",
            low <= p.milliseconds <= high,
        )
    sizes = np.abs(errors)
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
        answer = stock_answer(sources[0].read_bytes(), targets.load("mcxn94x"), source=sources[0].name)
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
    parts = [headers(), arenas(), latencies(), bounds()]
    if given.folder is not None:
        parts.append(files(given.folder))
    for part in parts:
        for line, met in part:
            missed += not met
            print(f"{'met   ' if met else 'MISSED'}  {line}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
