"""Loops are run by the checker itself: what the compiler made of them is proved, and lies about them are refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from openneutron.certify.prove import prove
from openneutron.certify.refused import Refused
from openneutron.convert import convert
from openneutron.litert import read_model, write_model
from openneutron.litert.graph import Model
from openneutron.options import Options
from tests.certify.forge import Blocks, forge_blocks
from tests.litert.passes.test_unroll_loops import chosen
from tests.loops import Loop

Change = Callable[[Model], None]


def change_file(data: bytes, change: Change) -> bytes:
    model = read_model(data)
    change(model)
    return write_model(model)


def constant(model: Model, graph: int, name: str, value: int) -> None:
    (tensor,) = [t for t in model.graphs[graph].tensors if t.name == name]
    assert tensor.data is not None
    made = tensor.data.copy()
    made.flat[0] = value
    tensor.data = made


LIES: dict[str, Change] = {
    "one trip fewer": lambda model: constant(model, 1, "limit1", 5),
    "another start": lambda model: setattr(model.main.tensors[1], "data", np.array(1, np.int32)),
    "another step": lambda model: constant(model, 2, "stride", 2),
    "another weight": lambda model: constant(model, 2, "w12", 77),
    "another first row": lambda model: constant(model, 0, "y", 3),
}


@pytest.mark.parametrize("lie", sorted(LIES))
def test_a_loop_of_another_source_is_refused(lie: str) -> None:
    loop = Loop(limit=6, rows=7) if lie != "another first row" else Loop(start=1)
    data = loop.data()
    compiled = convert(data, Options()).model
    assert prove(compiled, data).graphs == 1
    with pytest.raises(Refused):
        prove(compiled, change_file(data, LIES[lie]))


def test_a_changed_weight_of_a_rolled_loop_is_refused() -> None:
    data = Loop().data()

    def change(blocks: Blocks) -> None:
        blocks[1][0] ^= 1

    with pytest.raises(Refused, match="no operator of the source"):
        prove(forge_blocks(convert(data, Options()).model, change), data)


@pytest.mark.parametrize("name", ["limit1", "w12"])
def test_a_loop_on_the_cpu_is_its_graphs(name: str) -> None:
    """Its number of trips is not known, so it is the same loop only with the same graphs."""
    data = Loop(at_run_time=True).data()
    compiled = convert(data, Options()).model
    assert prove(compiled, data).graphs == 0
    graph = 1 if name == "limit1" else 2
    with pytest.raises(Refused, match=f"graph {graph} is none of the source's"):
        prove(change_file(compiled, lambda model: constant(model, graph, name, 1)), data)


def test_graphs_keep_their_order() -> None:
    def swap(model: Model) -> None:
        model.graphs[1:] = model.graphs[:0:-1]
        options = model.main.operators[0].options
        options.condSubgraphIndex, options.bodySubgraphIndex = 2, 1

    data = Loop(at_run_time=True).data()
    prove(data, data)
    with pytest.raises(Refused, match="graph 2 is none of the source's, in their order"):
        prove(change_file(data, swap), data)


def test_a_branch_of_a_known_condition() -> None:
    source, other = chosen(True), chosen(False)
    compiled = convert(source, Options()).model
    prove(compiled, source)
    with pytest.raises(Refused):
        prove(compiled, other)


def test_graphs_that_call_each_other_are_refused() -> None:
    data = Loop(at_run_time=True).model()
    body = data.graphs[2]
    body.operators.append(data.main.operators[0])
    body.operators[-1].inputs = list(body.inputs)
    body.operators[-1].outputs = []
    with pytest.raises(Refused):
        prove(write_model(data), write_model(data))
