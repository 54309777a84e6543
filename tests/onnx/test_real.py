"""Real networks from packages: imported as onnxruntime computes them, compiled, close to float."""

from __future__ import annotations

import pytest

from tests.onnx.real import NETWORKS, SQNR, Network, fetch, imported_apart, measure


@pytest.mark.full
@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.name)
def test_a_network_computes_what_onnxruntime_does_and_compiles(network: Network) -> None:
    fetch()
    assert imported_apart(network) < 1e-4
    found = measure(network)
    assert found.graphs >= 1
    assert min(found.sqnr) >= SQNR
