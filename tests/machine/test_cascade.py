"""A host runs several stripes of a cascade at a time: outputs and cycles are those of one by one.

Whoever watches a run gets its calls one by one. Random programs, under sanitizers, are in tests/c/test_cascade.c.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from openneutron.convert import convert
from openneutron.litert.read import read_model
from openneutron.machine.simulator import Simulator
from openneutron.microcode.graph_op import blocks_of, is_graph_op
from openneutron.options import Options
from tests.compiler.networks import random_network
from tests.golden import seeds
from tests.sampling import examples


@pytest.mark.parametrize("target", ["imxrt700", "mcxn94x", "imx95"])
@examples(8)
@given(seeds())
def test_networks_give_the_same_outputs_and_cycles(target: str, seed: int) -> None:
    model, _ = random_network(seed)
    graph = read_model(convert(model, Options(target=target)).model).main
    rng = np.random.default_rng(seed)
    for op in filter(is_graph_op, graph.operators):
        blocks = blocks_of(graph, op, outputs=len(op.outputs) - 1)
        with Simulator(blocks.microcode, blocks.weights, blocks.kernels, poison=True) as simulator:
            inputs = [rng.integers(0, 256, t.bytes, np.uint8).view(np.int8).reshape(t.shape) for t in simulator.inputs]
            together = simulator.run(inputs)
            cycles = simulator.cycles
            one_by_one, _ = simulator.run_with_events(inputs)
            assert all(map(np.array_equal, together, one_by_one))
            assert cycles == simulator.cycles
