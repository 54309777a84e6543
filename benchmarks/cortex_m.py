"""Models on a Cortex-M's own core: instructions of the image that `make firmware` builds, beside CMSIS-NN's, and its memory.

    python benchmarks/cortex_m.py                           CifarNet and the networks of MLPerf Tiny, on a Cortex-M33
    python benchmarks/cortex_m.py resnet8 model.tflite      other models, of the zoo or files
    python benchmarks/cortex_m.py --target cortex_m4        another processor
    python benchmarks/cortex_m.py --fit 0.5                 the convolutional ones in half of the memory that whole tensors take
    python benchmarks/cortex_m.py --functions 8             and the functions with the most instructions of each model

QEMU executes each image once and a plugin counts everything: start-up, preparing the model, one inference, printing outputs.
CMSIS-NN's instructions are of its kernels alone, counted in the same way outside this project on a Cortex-M33. RAM is the arena
of the image; `whole` is that of a plan that holds every tensor whole. Code is the image without model and inputs.
Needs the Debian packages gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import instructions  # noqa: E402
from openneutron.machine import targets  # noqa: E402
from tests.firmware import image  # noqa: E402

TARGET = "cortex_m33"
# Instructions of CMSIS-NN's kernels (its main of 2026, -O3, Cortex-M33 with DSP) for the layers of these models.
CMSIS_NN = {
    "cifarnet": 25_600_000,
    "resnet8": 30_400_000,
    "ds_cnn": 8_300_000,
    "vww_mobilenet_v1": 24_800_000,
    "autoencoder": 1_200_000,
}
# An autoencoder of vectors has no rows to stream, so no schedule of it takes less than whole tensors.
CONVOLUTIONAL = tuple(name for name in CMSIS_NN if name != "autoencoder")
# The same of single layers of 16 x 16 pixels and 64 channels, by kernel: a convolution of 1 x 1 and a depth-wise one of 3 x 3.
CMSIS_NN_LAYERS = {"conv2d": 2_700_000, "depthwise_conv2d": 1_810_000}
CMSIS_NN_LAYER_PIXELS = 16 * 16


@dataclass(frozen=True)
class Row:
    """What is known of one image."""

    name: str
    macs: int
    functions: Counter[str]
    arena_bytes: int
    whole_bytes: int
    code_bytes: int
    milliseconds: tuple[float, float, float]  # low, estimate, high

    @property
    def instructions(self) -> int:
        return self.functions.total()


def measure(model: str, target: str, fit: float | None = None) -> Row:
    """Build a model's image as `make firmware` does and count; `fit` is the share of whole tensors' memory it may take."""
    report = _build(model, target)
    totals = report["totals"]
    context = totals["context_bytes"]
    io_bytes = totals["arena_bytes"] - _aligned(totals["scratch_bytes"]) - _aligned(totals["prefetch_bytes"])
    whole = context + io_bytes + report["stock"]["scratch_bytes"]
    if fit is not None:
        # --fit counts inputs and outputs as they are, an arena has each at a multiple of 16.
        padding = io_bytes - totals["io_bytes"]
        report = _build(model, target, f"--fit {int(whole * fit) - context - padding}")
        totals = report["totals"]
    path = _folder(model) / f"{Path(model).stem}.elf"
    counted = instructions.count(path, target.replace("_", "-"))
    sections = image.sections(path)
    milliseconds = (totals["milliseconds_low"], totals["milliseconds"], totals["milliseconds_high"])
    return Row(
        Path(model).stem,
        totals["macs"],
        counted.functions,
        counted.run.number("arena"),
        whole,
        sections[".text"] + sections[".data"],
        milliseconds,
    )


def _folder(model: str) -> Path:
    return ROOT / "build" / "firmware" / Path(model).stem


def _aligned(size: int) -> int:
    return -(-size // 16) * 16


def _build(model: str, target: str, options: str = "") -> dict[str, dict[str, int]]:
    """Run `make firmware`; returns the report of the compile."""
    settings = [f"NETWORK={model}", f"TARGET={target}", f"OPTIONS={options}"]
    done = subprocess.run(["make", "-s", "firmware", *settings], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{model}: {(done.stderr or done.stdout).strip()}")
    report: dict[str, dict[str, int]] = json.loads((_folder(model) / "compiled.json").read_text("utf-8"))
    return report


def main(arguments: list[str]) -> int:
    """Print the table; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="of the zoo, or a file")
    parser.add_argument(
        "--target", default=TARGET, choices=[name for name in targets.names() if name not in targets.chips()]
    )
    parser.add_argument("--fit", type=float, metavar="SHARE", help="compile for this share of whole tensors' memory")
    parser.add_argument(
        "--functions", type=int, default=0, metavar="N", help="the N functions with the most instructions"
    )
    options = parser.parse_args(arguments)
    if absent := image.missing_tools():
        print(f"{', '.join(absent)} not found; install the Debian packages {image.PACKAGES}", file=sys.stderr)
        return 2
    columns = f"{'model':<22}{'MACs':>12}{'CMSIS-NN':>12}{'instructions':>14}{'ratio':>7}{'a MAC':>7}"
    print(f"{columns}{'RAM':>9}{'whole':>9}{'ratio':>7}{'code':>8}  milliseconds, estimated")
    for model in options.models or (CONVOLUTIONAL if options.fit else CMSIS_NN):
        row = measure(model, options.target, options.fit)
        print(line(row), flush=True)
        for name, count in row.functions.most_common(options.functions):
            print(f"{'':<34}{count / row.instructions:>11.1%} {count:>14,}  {name}")
    return 0


def line(row: Row) -> str:
    """Return a model's line of the table; models that CMSIS-NN was not counted for have no ratio to it."""
    peer = CMSIS_NN.get(row.name)
    theirs, ratio = (f"{peer:,}", f"{row.instructions / peer:.2f}") if peer else ("", "")
    low, middle, high = row.milliseconds
    counts = f"{row.macs:>12,}{theirs:>12}{row.instructions:>14,}{ratio:>7}{row.instructions / row.macs:>7.2f}"
    memory = f"{row.arena_bytes:>9,}{row.whole_bytes:>9,}{row.arena_bytes / row.whole_bytes:>7.2f}{row.code_bytes:>8,}"
    return f"{row.name:<22}{counts}{memory}  {middle:.1f} ({low:.1f} to {high:.1f})"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
