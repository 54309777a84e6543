"""A few hundred planted faults: every one is refused by the verifier or the checker, or changes nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.mutants.judge import DOZEN, YOUNGER, judge, models, table
from tests.mutants.plant import STAGES

COUNT = 252


@pytest.mark.parametrize("part", range(6))
def test_no_fault_is_seen_by_simulation_alone(part: int) -> None:
    mutants = [one for seed in range(part * COUNT // 6, (part + 1) * COUNT // 6) if (one := judge(seed)) is not None]
    missed = [one for one in mutants if one.outcome == "simulation"]
    assert not missed, "\n".join(map(str, missed)) + "\n" + table(mutants)
    assert Counter(one.outcome for one in mutants)["checker"] > 0


# What an earlier checker did not see: strides, a ring, a frame, a bound beyond the type that only the firmware refused.
@pytest.mark.parametrize(
    ("seed", "names"), [(15, DOZEN), (173, DOZEN), (224, DOZEN), (40, YOUNGER), (38, ()), (839, ())]
)
def test_faults_of_the_past(seed: int, names: tuple[str, ...]) -> None:
    mutant = judge(seed, names)
    assert mutant is None or mutant.outcome != "simulation"


def test_every_stage_is_broken() -> None:
    found = {
        one.stage for seed in range(0, len(models()) * len(STAGES), len(models())) if (one := judge(seed)) is not None
    }
    assert len(found) >= len(STAGES) - 1
