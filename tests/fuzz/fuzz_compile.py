"""Compiles random models until the time is up: `make fuzz-compile SECONDS=60 [SEED=1]`.

Each model is compiled for a random target at a random level and budget, verified by the compiler, proved by the checker,
and run against LiteRT at 0 LSB. LiteRT graphs are INT8 and INT16 networks with branches, batches and several outputs, and
models with state: variables, LSTM, SVDF. PyTorch networks come every so often. A failure prints its seed; hypothesis shrinks
LiteRT graphs to the smallest that fails, which is left under build/fuzz. Once it is repaired, it goes to tests/fuzz/corpus.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
from hypothesis import HealthCheck, Phase, given, seed, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from tests.fuzz.compile_once import FOUND, compile_once, torch_once  # noqa: E402

PER_TORCH = 25  # LiteRT graphs for each PyTorch network: an export takes as long as those


def round_of(number: int, count: int) -> None:
    """Hypothesis looks for a failure among some models, and shrinks it."""

    @seed(number)
    @settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(st.data())
    def search(data: st.DataObject) -> None:
        compile_once(data)

    search()


def main() -> int:
    """0 when nothing failed in the given time."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--seed", type=int, default=None)
    given_ = arguments.parse_args()
    first = int(np.random.default_rng().integers(1 << 30)) if given_.seed is None else given_.seed
    end = time.monotonic() + given_.seconds
    done = 0
    number = first
    while time.monotonic() < end:
        print(f"seed {number}: {PER_TORCH} LiteRT graphs and a PyTorch network", flush=True)
        try:
            round_of(number, PER_TORCH)
            torch_once(number)
        except BaseException:
            print(f"failed: python tests/fuzz/fuzz_compile.py --seed {number} --seconds 1", file=sys.stderr)
            print(f"the model and its options: {FOUND}/found.tflite and found.json", file=sys.stderr)
            raise
        done += PER_TORCH + 1
        number += 1
    print(f"{done} models compiled, verified, proved and compared; seeds {first} to {number - 1}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
