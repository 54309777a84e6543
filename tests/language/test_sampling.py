"""Choosing tokens: the likeliest, or one of the likely ones, the same from the same seed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from openneutron.errors import OptionError
from openneutron.language.sampling import Sampling

LOGITS = np.log(np.array([0.1, 0.6, 0.25, 0.05], np.float32))


def test_without_temperature_the_likeliest() -> None:
    assert {Sampling().chooser(seed)(LOGITS) for seed in range(5)} == {1}


def test_shares_follow_the_logits() -> None:
    choose = Sampling(temperature=1.0).chooser(3)
    counts = Counter(choose(LOGITS) for _ in range(4000))
    assert [round(counts[token] / 4000, 1) for token in range(3)] == [0.1, 0.6, 0.2] or abs(
        counts[2] / 4000 - 0.25
    ) < 0.03


def test_rare_tokens_are_left_out() -> None:
    choose = Sampling(temperature=1.0, top_p=0.7).chooser(0)
    assert {choose(LOGITS) for _ in range(200)} == {1, 2}


def test_one_seed_one_text() -> None:
    first, again = (Sampling(temperature=0.9).chooser(7) for _ in range(2))
    assert [first(LOGITS) for _ in range(20)] == [again(LOGITS) for _ in range(20)]


@pytest.mark.parametrize(("temperature", "top_p"), [(-1, 1), (float("nan"), 1), (float("inf"), 1), (1, 0), (1, 1.5)])
def test_settings_outside(temperature: float, top_p: float) -> None:
    with pytest.raises(OptionError, match=r"temperature is|top_p is"):
        Sampling(temperature, top_p)
