"""Methods survive the way to another process and back, and have words."""

from __future__ import annotations

import dataclasses
import json

import pytest

from openneutron.quantize_litert.methods import BALANCES, Methods


@pytest.mark.parametrize(
    "methods",
    [Methods(), Methods(BALANCES[1]), Methods(BALANCES[0], round_weights=True, ranges=(("conv", -0.1, 0.2),))],
)
def test_methods_come_back(methods: Methods) -> None:
    assert Methods.of(json.loads(json.dumps(dataclasses.asdict(methods)))) == methods
    assert len(methods.words) == (methods.balance is not None) + methods.round_weights + bool(methods.ranges)
