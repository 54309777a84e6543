from __future__ import annotations

import pytest

from benchmarks.networks import NETWORKS, chain
from openneutron.convert import convert
from openneutron.litert.read import read_model
from openneutron.options import Options

# Multiply-accumulates as the models' papers and MLPerf Tiny give them, in millions.
MILLIONS = {
    "cifarnet": 12.3, "resnet8": 12.5, "ds_cnn": 2.7, "autoencoder": 0.26, "vww": 7.5, "mobilenet_v1": 569,
    "mobilenet_v2": 301,
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_are_what_they_are_called(name: str) -> None:
    totals = convert(NETWORKS[name](), Options(optimize="fast")).report.totals
    assert totals.operators_converted == totals.operators_total
    assert totals.macs / 1e6 == pytest.approx(MILLIONS[name], rel=0.02)


@pytest.mark.parametrize("count", [1, 2, 20, 21, 22])
def test_a_chain_has_as_many_operators_as_asked_for(count: int) -> None:
    assert len(read_model(chain(count)).main.operators) == count
