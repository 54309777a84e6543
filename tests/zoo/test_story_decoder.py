"""The trained decoder: with its cache it computes what it does without, and it expects the test stories."""

from __future__ import annotations

import math

import torch

from openneutron import zoo
from openneutron.zoo.story_decoder import sequences, steps


def test_a_token_a_call_is_the_whole_sequence() -> None:
    model = zoo.load("story_decoder").model
    row = sequences("test")[0][:24]
    with torch.no_grad():
        whole = model.without_cache(torch.tensor([row]))
        one_by_one = torch.cat([model(*step) for step in steps(row)], 1)
    assert torch.allclose(whole, one_by_one, atol=1e-4)


def test_it_has_learned_the_grammar() -> None:
    loaded = zoo.load("story_decoder")
    rows = torch.tensor(loaded.test_sequences)
    with torch.no_grad():
        logits = loaded.model.without_cache(rows[:, :-1])
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
    assert 1.2 < math.exp(float(loss)) < 2.0


def test_it_is_described_as_it_is() -> None:
    loaded = zoo.load("story_decoder")
    assert sum(parameter.numel() for parameter in loaded.model.parameters()) // 1000 == 292 and loaded.trained
    assert loaded.constants == {"get_bos_id": 0, "get_eos_ids": [1]}
    assert len(loaded.calibration) == 4 * 256 and len(loaded.test_sequences) == 16
