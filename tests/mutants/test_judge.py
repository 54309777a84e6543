"""A few hundred planted faults: every one is refused by the verifier or the checker, or changes nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.mutants.judge import BOTH, DOZEN, OLDER_STAGES, YOUNGER, judge, models, table
from tests.mutants.plant import STAGES

COUNT = 432  # seeds: every model twice behind every stage


@pytest.mark.parametrize("part", range(6))
def test_no_fault_is_seen_by_simulation_alone(part: int) -> None:
    mutants = [one for seed in range(part, COUNT, 6) if (one := judge(seed)) is not None]
    missed = [one for one in mutants if one.outcome == "simulation"]
    assert not missed, "\n".join(map(str, missed)) + "\n" + table(mutants)
    assert len(mutants) > COUNT // 12 and Counter(one.outcome for one in mutants)["checker"] > 0


# What an earlier checker did not see: strides, a ring, a frame, a bound beyond the type that only the firmware refused.
@pytest.mark.parametrize(
    ("seed", "names"), [(15, DOZEN), (173, DOZEN), (224, DOZEN), (40, YOUNGER), (38, BOTH), (839, BOTH)]
)
def test_faults_of_the_past(seed: int, names: tuple[str, ...]) -> None:
    mutant = judge(seed, names, OLDER_STAGES)
    assert mutant is None or mutant.outcome != "simulation"


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_is_broken(stage: str) -> None:
    first = STAGES.index(stage) * len(models())
    assert any(judge(seed) is not None for seed in range(first, first + len(models())))
