from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from openneutron.analyze.verify import verify_subject
from openneutron.errors import OptionError
from openneutron.run.golden import golden_values
from openneutron.run.runner import random_inputs
from tests import tiny
from tests.analyze.subjects import damaged, subject_of
from tests.compiler.networks import random_network


def golden_of(model: bytes, subject, seed: int = 3):
    inputs = random_inputs([subject.source.tensors[i] for i in subject.source.inputs], seed=seed)
    golden = golden_values(model, inputs)
    return [golden[i] for i in subject.inputs], golden


@pytest.mark.parametrize("target", ["imxrt700", "mcxn94x", "imx95"])
@pytest.mark.parametrize("optimize", ["fast", "default"])
def test_every_layer_of_a_right_schedule_is_at_0_lsb(target: str, optimize: str) -> None:
    model = tiny.convnet()
    subject = subject_of(model, target, optimize=optimize)
    found = verify_subject(subject, *golden_of(model, subject))
    assert found.equal and found.worst is None and found.cycles > 0
    assert [layer.name for layer in found.layers if layer.compared] == ["conv", "pool", "logits", "scores"]
    assert all(layer.sqnr == math.inf and layer.histogram == {0: layer.elements} for layer in found.layers)


def test_a_wrong_weight_is_found_where_it_acts_first() -> None:
    model = tiny.convnet()
    subject = damaged(subject_of(model), "fully_connected")
    found = verify_subject(subject, *golden_of(model, subject))
    assert found.first is not None and found.first.name == "logits"
    assert found.worst is not None and found.worst.sqnr < 60
    assert [layer.equal for layer in found.layers][:2] == [True, True]
    assert sum(found.first.histogram.values()) == found.first.elements == 5
    assert found.first.differing >= 1 and found.first.largest >= 1


def test_values_are_those_of_whole_tensors_even_where_only_rings_existed() -> None:
    model = tiny.convnet()
    subject = subject_of(model)
    inputs, golden = golden_of(model, subject)
    values = verify_subject(subject, inputs, golden).values
    tensors = {tensor.name: at for at, tensor in enumerate(subject.source.tensors)}
    for name in ("conv", "pool", "logits", "scores"):
        assert np.array_equal(values[name], golden[tensors[name]])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("target", ["imxrt700", "imx95"])
def test_every_layer_of_random_networks_verifies(seed: int, target: str) -> None:
    model, _ = random_network(seed)
    subject = subject_of(model, target)
    assert verify_subject(subject, *golden_of(model, subject)).first is None


def test_layers_of_another_model_are_refused() -> None:
    subject = subject_of(tiny.convnet())
    other = dataclasses.replace(subject, kernels=subject.kernels[1:])
    with pytest.raises(OptionError, match="not those of the model it is compared with"):
        verify_subject(other, *golden_of(tiny.convnet(), subject))
