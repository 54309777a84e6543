"""Records which check finds a planted fault: the compiler with its verifier, the checker, or a comparison of outputs.

A fault that none of them finds changes no result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from openneutron.certify.prove import prove
from openneutron.certify.refused import Refused
from openneutron.convert import convert
from openneutron.errors import OpenNeutronError
from openneutron.litert.graph import DType
from openneutron.options import Options
from openneutron.run.runner import LiteRtRunner, random_inputs
from tests import tiny
from tests.caches import Cache
from tests.compiler.networks import random_network
from tests.loops import Loop
from tests.mutants.plant import STAGES, Missed, plant_fault
from tests.recurrent import gru
from tests.stateful import Lstm, Svdf
from tests.streaming import streaming_convnet

OUTCOMES = ("verifier", "checker", "simulation", "equivalent")
TRIES = 3  # inputs on which a mutant that no check refused must agree
TARGETS = ("imxrt700", "mcxn94x", "imx95")


@dataclass(frozen=True)
class Mutant:
    """A fault and the check that found it."""

    seed: int
    model: str
    target: str
    stage: str
    what: str
    outcome: str


@cache
def models() -> dict[str, bytes]:
    """Return small models: INT8 and INT16 networks, models with state, loops."""
    made = {"convnet": tiny.convnet(), "sandwich": tiny.sandwich()}
    for seed in range(10):
        made[f"network {seed}"] = random_network(seed)[0]
    for seed in range(4):
        made[f"wide network {seed}"] = random_network(seed, DType.INT16)[0]
    made["streaming"] = streaming_convnet()
    made["lstm"] = Lstm(project=True, outputs=5, normalize=True, peephole=False).model()
    made["peephole lstm"] = Lstm(batch=2, peephole=True, coupled=True, time_major=True).model()
    made["svdf"] = Svdf(batch=2).model()
    made["cache"] = Cache().data()
    made["gru"] = gru(6, sequence=True)
    made["wide gru"] = gru(5, backwards=True, wide=True)
    made["while"] = Loop(rows=5, reads="slice", writes="concat", outputs=("sequence", "state")).data()
    made["wide while"] = Loop(rows=4, lstm=True, wide=True, zeros=True).data()
    return made


# Regression tests use seeds drawn with these lists.
DOZEN = ("convnet", *(f"network {seed}" for seed in range(10)), "sandwich")
YOUNGER = (*(f"wide network {seed}" for seed in range(4)), "streaming", "lstm", "peephole lstm", "svdf")
BOTH = tuple(sorted((*DOZEN, *YOUNGER)))
OLDER_STAGES = ("legalize", "fuse", "schedule", "allocate", "emit", "encode")


def judge(seed: int, names: Sequence[str] = (), stages: Sequence[str] = STAGES) -> Mutant | None:
    """Plant and check one fault; None when the drawn fault is impossible in this model."""
    rng = np.random.default_rng(seed)
    names = names or sorted(models())
    name = names[seed % len(names)]
    stage, target = stages[seed // len(names) % len(stages)], TARGETS[int(rng.integers(len(TARGETS)))]
    optimize = ("fast", "default")[int(rng.integers(2))]
    data = models()[name]
    options = Options(target=target, optimize=optimize, fetch_constants_to_sram=bool(rng.integers(2)))

    def found(outcome: str) -> Mutant:
        return Mutant(seed, name, target, stage, said[0] if said else "", outcome)

    with plant_fault(stage, rng) as said:
        try:
            result = convert(data, options)
        except Missed:
            return None
        except Exception:  # any exception of the compiler counts as finding the fault
            return found("verifier")
    if not said:
        return None
    try:
        prove(result.model, data)
    except Refused:
        return found("checker")
    return found("equivalent" if agree(result.model, data) else "simulation")


def agree(compiled: bytes, source: bytes) -> bool:
    """Return whether two models give the same outputs for some random inputs."""
    try:
        ours, reference = LiteRtRunner(compiled), LiteRtRunner(source)
        for seed in range(TRIES):
            inputs = random_inputs(reference.inputs, seed=seed)
            wanted, got = reference.run(inputs).outputs, ours.run(inputs).outputs
            if any(not np.array_equal(wanted[key], got[key]) for key in wanted):
                return False
    except OpenNeutronError:
        return False
    return True


def table(mutants: Iterable[Mutant]) -> str:
    """Return counts by stage and outcome, as Markdown."""
    counts = Counter((one.stage, one.outcome) for one in mutants)
    rows = [f"| fault planted behind | {' | '.join(OUTCOMES)} | all |", f"|---|{'---:|' * (len(OUTCOMES) + 1)}"]
    for stage in (*STAGES, "all stages"):
        numbers = [
            sum(n for (s, o), n in counts.items() if o == outcome and stage in (s, "all stages"))
            for outcome in OUTCOMES
        ]
        rows.append(f"| {stage} | {' | '.join(f'{n:,}' for n in numbers)} | {sum(numbers):,} |")
    return "\n".join(rows)
