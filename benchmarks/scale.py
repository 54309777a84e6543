"""Large decoders from nn.Module to `.pte`: CPU seconds per million parameters, and peak memory against the float weights.

    python benchmarks/scale.py                      30 million parameters
    python benchmarks/scale.py 150m                 others: 5m, 450m, 1.1b
    python benchmarks/scale.py 30m --weights int4   options of a compile: weights, activations

A Llama-shaped decoder with random weights and its cache of keys and values compiles in a process of its own, after a tiny one,
so that imports are not counted in the seconds; they are in the memory. The float weights come from a safetensors file that
is mapped into memory. "resident" is the process's peak; "of its own" leaves out pages that are the file's, which the
system may drop at any time. Nothing is searched for accuracy (quality="plain"): the weights are random.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

SECONDS_GOAL, MEMORY_GOAL = 0.15, 1.6  # CPU seconds per million parameters; peak against float weights
SAMPLES = 4
_EVERY = 0.02  # seconds between two looks at the memory


@dataclass(frozen=True)
class Shape:
    """Sizes of a decoder, as Llama's configuration names them."""

    width: int
    layers: int
    heads: int
    kv_heads: int
    hidden: int
    vocabulary: int
    context: int = 128


SHAPES = {
    "5m": Shape(192, 4, 6, 2, 512, 4096, 64),
    "30m": Shape(512, 6, 8, 2, 1408, 8192),
    "150m": Shape(1024, 9, 16, 4, 2816, 16384),
    "450m": Shape(1536, 14, 24, 4, 4096, 32000),
    "1.1b": Shape(2048, 22, 32, 4, 5632, 32000),
}


class Memory:
    """Peak bytes of this process: all that is resident, and what no file backs."""

    def __init__(self) -> None:
        self.resident = self.own = 0

    def look(self) -> None:
        """Compare with what is used now."""
        fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        resident, own = (int(fields[name].split()[0]) * 1024 for name in ("VmRSS", "RssAnon"))
        self.resident, self.own = max(self.resident, resident), max(self.own, own)

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Look again and again while the block runs."""
        done = threading.Event()

        def run() -> None:
            while not done.wait(_EVERY):
                self.look()

        watcher = threading.Thread(target=run, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            self.look()
            done.set()
            watcher.join()


def write_weights(model: Any, path: Path) -> int:
    """Write random weights for a module on the device meta, one tensor after the other; returns their bytes."""
    import torch

    header, size = {}, 0
    for name, value in model.state_dict().items():
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [size, size + 4 * value.numel()]}
        size += 4 * value.numel()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    generator = torch.Generator().manual_seed(0)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, value in model.state_dict().items():
            made = (
                torch.ones(value.shape)
                if name.endswith("norm.weight")
                else torch.randn(value.shape, generator=generator)
            )
            scale = value.shape[-1] ** -0.5 if value.dim() == 2 and "embedding" not in name else 1.0
            file.write((made * scale).numpy().tobytes())
    return size


def compile_decoder(shape: Shape, folder: Path, **options: Any) -> dict[str, float]:
    """Compile a decoder; returns its figures."""
    import torch

    import openneutron as on
    from benchmarks.decoder_network import Decoder

    with torch.device("meta"):
        model = Decoder(shape)
    float_bytes = write_weights(model, folder / "model.safetensors")
    parameters = sum(one.numel() for one in model.parameters())
    memory = Memory()
    with memory.watch():
        began = time.process_time()
        on.load_weights(model, folder).eval()
        model.set_tables()
        samples = [(torch.tensor([[7 * at % shape.vocabulary]]), torch.tensor([at])) for at in range(SAMPLES)]
        program = on.compile(model, samples[0], calibration=samples, quality="plain", **options)
        seconds = time.process_time() - began
    return {
        "parameters": parameters, "float_bytes": float_bytes, "seconds": seconds, "resident": memory.resident,
        "own": memory.own, "pte": len(program.data), "graphs": program.report.totals.neutron_graphs,
    }  # fmt: skip


def measure(size: str, options: dict[str, Any]) -> dict[str, float]:
    """Return the figures of a decoder, in this process, after a tiny one."""
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="openneutron-") as folder:
        compile_decoder(Shape(64, 1, 2, 1, 96, 128, 16), Path(folder), **options)
        return compile_decoder(SHAPES[size], Path(folder), **options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", metavar="SIZE")
    parser.add_argument("--weights", choices=("int8", "int4"), default="int8")
    parser.add_argument("--activations", choices=("int8", "int16"), default="int16")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if unknown := sorted(set(given.sizes) - set(SHAPES)):
        parser.error(f"{unknown[0]!r} is none of {', '.join(SHAPES)}")
    options = {"weights": given.weights, "activations": given.activations}
    if given.measure:
        print(json.dumps(measure(given.sizes[0], options)))
        return
    print(f"goals: {SECONDS_GOAL} s of CPU per million parameters, resident at most {MEMORY_GOAL} × the float weights")
    print(
        f"{'parameters':>12}{'CPU s':>9}{'s / M':>8}{'float MiB':>11}{'resident':>10}{'own':>7}{'.pte MiB':>10}{'graphs':>8}"
    )
    for size in given.sizes or ["30m"]:
        words = [sys.executable, __file__, size, "--measure", *(f"--{name}={value}" for name, value in options.items())]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{size} failed: {done.stderr.strip()[-800:]}")
        one = json.loads(done.stdout.splitlines()[-1])
        resident, own = (one[name] / one["float_bytes"] for name in ("resident", "own"))
        print(
            f"{one['parameters']:12,}{one['seconds']:9.1f}{one['seconds'] / one['parameters'] * 1e6:8.3f}"
            f"{one['float_bytes'] / 2**20:11.0f}{resident:9.2f}×{own:6.2f}×{one['pte'] / 2**20:10.0f}{one['graphs']:8}",
            flush=True,
        )


if __name__ == "__main__":
    main()
