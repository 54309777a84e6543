"""Costs of the cycle model on a processor: instructions counted under QEMU, times the cycles that one takes.

    python benchmarks/cortex_m_costs.py            fit the costs to whole images, and print how well they predict each
    python benchmarks/cortex_m_costs.py --write    also write them into the files of all processor targets with the same loops
    python benchmarks/cortex_m_costs.py --target cortex_m55 --write    the loops with Helium, which Cortex-M85 has too

The model is linear in its constants, so each network gives one equation: steps of each kind times their instructions are what
its image executed. Constants have priors, from the assembly of the loops; networks are then predicted by a fit on the others.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import cortex_m  # noqa: E402
from openneutron.cli.inputs.payloads import payload_of_file  # noqa: E402
from openneutron.compiler import kernels  # noqa: E402
from openneutron.compiler.back.predict import predict  # noqa: E402
from openneutron.machine import targets  # noqa: E402
from openneutron.machine.pricing import Machine  # noqa: E402
from openneutron.microcode.decode import decode  # noqa: E402
from openneutron.microcode.instructions import Program  # noqa: E402
from openneutron.microcode.payload import parse_payload  # noqa: E402

Vector = npt.NDArray[np.float64]
NETWORKS = (*cortex_m.CMSIS_NN, "resnet20", "mobilenet_v2_cifar", "tcn")
# Instructions, and how far they may be off (a standard deviation, as a share), by reading the loops.
PRIORS = {
    "mac": (15.3, 0.05),  # products of four inputs with four channels of one of two pixels
    "lane": (6.0, 0.3),  # a tap of four channels
    "output": (75.0, 0.3),  # four outputs of a pixel: gathering inputs, rescaling, storing
    "row": (80.0, 0.7),
    "element": (15.0, 0.2),
    "call": (2500.0, 0.3),  # decoding it, and weights of depth-wise loops as pairs
}
# The same of the loops with Helium.
HELIUM_PRIORS = {
    "mac": (2.6, 0.2),
    "lane": (2.8, 0.3),
    "output": (45.0, 0.3),  # with the inputs of a window as bytes
    "row": (60.0, 0.7),
    "element": (6.2, 0.1),  # counted in additions
    "call": (3500.0, 0.15),
}
HELIUM = ("cortex_m55", "cortex_m85")
_WITHIN = 0.04  # what the form of the model may be off
_STEP = 1 << 20  # price of one step while steps are counted: large, since cycles are rounded up


def priors_of(name: str) -> dict[str, tuple[float, float]]:
    """Return the priors of the loops that a processor runs."""
    return HELIUM_PRIORS if name in HELIUM else PRIORS


def steps(program: Program, target: targets.Target) -> Vector:
    """Return how many steps of each kind of `PRIORS` a program takes."""
    none = replace(target.cost, **dict.fromkeys(PRIORS, 0), weight_byte=0, decode_byte=0)
    counts = []
    for name in PRIORS:
        machine = Machine(replace(target, cost=replace(none, **{name: _STEP})))
        counts.append(predict(program, target, machine)[1] * 1024 / _STEP)
    return np.array(counts)


def fit(rows: Vector, counted: Vector, of: dict[str, tuple[float, float]]) -> Vector:
    """Return the instructions of each step, by their priors."""
    priors = np.array([value for value, _ in of.values()])
    sigmas = np.array([share for _, share in of.values()])
    scaled = rows * priors / counted[:, None] / _WITHIN
    left = np.vstack([scaled, np.diag(1 / sigmas)])
    right = np.concatenate([np.full(len(rows), 1 / _WITHIN), 1 / sigmas])
    found: Vector = np.linalg.lstsq(left, right, rcond=None)[0]
    return np.maximum(found, 0.05) * priors


def measured(name: str, target: str) -> tuple[Vector, float]:
    """Return the steps of a network and the instructions of its image."""
    row = cortex_m.measure(name, target)
    path = ROOT / "build" / "firmware" / name / "compiled.pte"
    where, data = payload_of_file(path.read_bytes(), path.name, None)
    payload = parse_payload(data, where=where)
    program = decode(payload.microcode, payload.weights, payload.kernels)
    return steps(program, targets.load(target)), float(row.instructions)


def write(constants: dict[str, float], counted_on: str) -> None:
    """Write the costs of all processors with the same loops: instructions times the cycles that each takes, in 1/1024."""
    for name in targets.names():
        target = targets.load(name)
        if not target.processor or (name in HELIUM) != (counted_on in HELIUM):
            continue
        path = Path(targets.FOLDER, f"{name}.toml")
        text = path.read_text("utf-8")
        for constant, instructions in constants.items():
            value = round(instructions * target.cycles_per_instruction * 1024)
            text = re.sub(rf"^{constant} = \d+", f"{constant} = {value}", text, flags=re.MULTILINE)
        path.write_text(text, "utf-8")


def main(arguments: list[str]) -> int:
    """Print constants and errors; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the costs into the target files")
    parser.add_argument("--target", default=cortex_m.TARGET, choices=[cortex_m.TARGET, HELIUM[0]])
    options = parser.parse_args(arguments)
    kernels.rules()  # reading microcode needs to know them
    priors = priors_of(options.target)
    pairs = [measured(name, options.target) for name in NETWORKS]
    rows, counted = np.array([row for row, _ in pairs]), np.array([count for _, count in pairs])
    constants = fit(rows, counted, priors)
    for name, value in zip(PRIORS, constants, strict=True):
        print(f"{name:<10}{value:>10.2f} instructions")
    print(f"\n{'network':<22}{'counted':>14}{'fitted':>9}{'left out':>10}")
    for at, name in enumerate(NETWORKS):
        others = np.arange(len(NETWORKS)) != at
        alone = rows[at] @ fit(rows[others], counted[others], priors)
        print(
            f"{name:<22}{counted[at]:>14,.0f}{rows[at] @ constants / counted[at] - 1:>+9.1%}{alone / counted[at] - 1:>+10.1%}"
        )
    if options.write:
        write(dict(zip(PRIORS, constants, strict=True)), options.target)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
