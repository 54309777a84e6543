"""What each replacement of a function of torch, torchao, ExecuTorch or ruamel.yaml saves: without it over with it.

    python benchmarks/upstream.py                       every replacement on five networks
    python benchmarks/upstream.py --calls               function calls in place of CPU seconds: the same on a busy machine
    python benchmarks/upstream.py --models resnet8      others of the zoo
    python benchmarks/upstream.py --imports             what the import of ExecuTorch's exporter takes

A compile is `lower_ours` of benchmarks/lowering.py: nn.Module to `.pte`. With and without take turns in one process, and the
least CPU seconds of either are compared; the import is measured in new processes. A replacement that saves less than 5 %
everywhere has no place in `src/openneutron/executorch/upstream/`. The bytes must be the same.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.lowering import CHAIN, Clock, chain, lower_ours  # noqa: E402
from tests.work import calls  # noqa: E402

SWITCH = "OPENNEUTRON_PLAIN"
PIECES, PARTITIONS = "pieces", 40  # a network that becomes many partitions
ON_CPU = {PIECES: ("aten.sigmoid.default",)}  # of its operators
MODELS = ("resnet8", "gru_kws", "mobilenet_v2", CHAIN, PIECES)
IMPORTS = ("read_types_in_c", "leave_inductor_out")
TRAINING = ("skip_absent_convs",)  # no part of these compiles: it saves most of a short training
NEEDED = 1.05  # a compile without it over one with it
SAMPLES = 4
_IMPORT = """
import time, torch
from openneutron.executorch.upstream.load_exporter import load_exporter
began = time.process_time()
load_exporter()
import openneutron.executorch.pipeline
print(time.process_time() - began)
"""


def given(name: str) -> tuple[Any, ...]:
    """A network, an input and calibration data."""
    from openneutron import zoo

    if name == CHAIN:
        return chain()
    if name == PIECES:
        return pieces()
    model = zoo.load(name)
    return model.model, model.example_inputs, model.calibration[:SAMPLES]


def pieces() -> tuple[Any, ...]:
    """Convolutions with a function between them, which stays on the CPU (see `ON_CPU`)."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    layers = [one for _ in range(PARTITIONS) for one in (nn.Conv2d(4, 4, 3, padding=1), nn.Sigmoid())]
    images = [(torch.randn(1, 4, 8, 8),) for _ in range(2)]
    return nn.Sequential(*layers).eval(), images[0], images


def compile_without(names: str, name: str, network: tuple[Any, ...]) -> bytes:
    """Compile with these replacements turned off."""
    os.environ[SWITCH] = names
    try:
        return lower_ours(*network, Clock(), cpu=ON_CPU.get(name, ()))
    finally:
        del os.environ[SWITCH]


def seconds(action: Callable[[], Any]) -> float:
    """CPU seconds of this process."""
    began = time.process_time()
    action()
    return time.process_time() - began


def measure(name: str, rounds: int, work: Callable[[Callable[[], Any]], float]) -> dict[str, float]:
    """Print what each replacement saves in one network; returns the ratios."""
    from openneutron.executorch.upstream.switch import REPLACEMENTS

    network = given(name)
    wanted = compile_without("", name, network)
    ratios: dict[str, float] = {}
    for one in [*sorted(REPLACEMENTS.keys() - {*IMPORTS, *TRAINING}), "1"]:
        if compile_without(one, name, network) != wanted:
            raise SystemExit(f"{name}: other bytes with {SWITCH}={one}")
        taken: dict[str, list[float]] = {"": [], one: []}
        for _ in range(rounds):
            for off, found in taken.items():
                found.append(work(lambda off=off: compile_without(off, name, network)))  # type: ignore[misc]
        ratios[one] = min(taken[one]) / min(taken[""])
        print(f"{name:14}without {'all of them' if one == '1' else one:24}{ratios[one]:6.2f} ×", flush=True)
    return ratios


def measure_imports(rounds: int) -> dict[str, float]:
    """Print what each replacement saves while the exporter is imported."""
    ratios = {}
    for one in (*IMPORTS, ",".join(IMPORTS)):
        taken: dict[str, list[float]] = {"": [], one: []}
        for _ in range(rounds):
            for off, found in taken.items():
                done = subprocess.run(
                    [sys.executable, "-c", _IMPORT], env={**os.environ, SWITCH: off}, check=True, capture_output=True
                )
                found.append(float(done.stdout))
        ratios[one] = min(taken[one]) / min(taken[""])
        print(f"import without {one:40}{min(taken[one]):6.2f} s{ratios[one]:7.2f} ×", flush=True)
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(MODELS), metavar="NAME")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", action="store_true")
    parser.add_argument("--imports", action="store_true")
    chosen = parser.parse_args()
    if chosen.imports:
        measure_imports(chosen.rounds)
        return
    import torch

    from openneutron.executorch.upstream.load_exporter import load_exporter

    load_exporter()
    from openneutron.executorch import pipeline  # noqa: F401  imports every replacement

    torch.set_num_threads(1)
    best: dict[str, float] = {}
    for name in chosen.models:
        ratios = measure(name, 1 if chosen.calls else chosen.rounds, calls if chosen.calls else seconds)
        best = {one: max(ratio, best.get(one, 0.0)) for one, ratio in ratios.items()}
    few = [one for one, ratio in best.items() if ratio < NEEDED]
    print(f"less than {NEEDED - 1:.0%}: {', '.join(few) or 'none'}")


if __name__ == "__main__":
    main()
