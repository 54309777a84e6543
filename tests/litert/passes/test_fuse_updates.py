"""Chains of updates become one CONCATENATION, of as few pieces as there are; what is no such chain stays."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.litert import DType, GraphBuilder, write_model
from openneutron.litert.graph import Graph
from openneutron.litert.passes.fuse_updates import fuse_updates
from openneutron.run.runner import LiteRtRunner, random_inputs


class Chain:
    """Rows written into [rows, 3] of INT8."""

    def __init__(self, rows: int = 5, constant: bool = True) -> None:
        self.g, self.rows, self.count = GraphBuilder(), rows, 0
        self.inputs: list[int] = []
        data = np.arange(3 * rows).reshape(rows, 3) if constant else None
        self.y = self.tensor(rows, data)
        if not constant:
            self.inputs.append(self.y)

    def tensor(self, rows: int, data: object = None, width: int = 3, scale: float = 0.1) -> int:
        self.count += 1
        return self.g.tensor(f"t{self.count}", (rows, width), DType.INT8, scale, 0, data=data)  # type: ignore[arg-type]

    def numbers(self, *values: int) -> int:
        self.count += 1
        return self.g.tensor(f"n{self.count}", (len(values),), DType.INT32, data=values)

    def given(self, rows: int = 1, width: int = 3, scale: float = 0.1) -> int:
        self.inputs.append(self.tensor(rows, None, width, scale))
        return self.inputs[-1]

    def update(self, row: int, part: int, column: int = 0) -> None:
        made = self.tensor(self.rows)
        self.g.op("DYNAMIC_UPDATE_SLICE", [self.y, part, self.numbers(row, column)], [made])
        self.y = made

    def around(self, row: int, part: int) -> None:
        """The same by slices around it."""
        parts = []
        for first, count in ((0, row), (row + 1, self.rows - row - 1)):
            parts.append(self.tensor(count))
            self.g.op("SLICE", [self.y, self.numbers(first, 0), self.numbers(count, -1)], parts[-1:])
        made = self.tensor(self.rows)
        self.g.op("CONCATENATION", [parts[0], part, parts[1]], [made], axis=0)
        self.y = made

    def fused(self, *outputs: int) -> Graph:
        """The graph after the pass, which computes what it did before."""
        model = self.g.finish(self.inputs, list(outputs) or [self.y])
        before = write_model(model)
        graph = model.main
        graph.operators = fuse_updates(graph, graph.operators, graph.outputs)
        runners = [LiteRtRunner(data) for data in (before, write_model(model))]
        inputs = random_inputs(runners[0].inputs, seed=1)
        wanted, got = (list(runner.run(inputs).outputs.values()) for runner in runners)
        assert all(np.array_equal(a, b) for a, b in zip(wanted, got, strict=True))
        return graph


def codes(graph: Graph) -> list[str]:
    return [op.code for op in graph.operators]


@pytest.mark.parametrize("write", [Chain.update, Chain.around])
def test_all_rows_written_in_turn(write: object) -> None:
    chain = Chain()
    parts = [chain.given() for _ in range(5)]
    for row, part in enumerate(parts):
        write(chain, row, part)  # type: ignore[operator]
    graph = chain.fused()
    assert codes(graph) == ["CONCATENATION"] and graph.operators[0].inputs == parts


@pytest.mark.parametrize("constant", [True, False])
def test_rows_that_are_not_written_stay_what_they_were(constant: bool) -> None:
    chain = Chain(constant=constant)
    chain.update(3, chain.given())
    chain.update(1, chain.given())
    graph = chain.fused()
    assert codes(graph) == ["CONCATENATION"] if constant else ["SLICE", "SLICE", "SLICE", "CONCATENATION"]
    assert len(graph.operators[-1].inputs) == 5


def test_a_row_that_is_written_twice_is_the_last() -> None:
    chain = Chain(rows=2)
    chain.update(0, chain.given())
    chain.update(1, chain.given())
    chain.update(0, chain.given())
    assert chain.fused().operators[0].inputs == [chain.inputs[2], chain.inputs[1]]


def test_an_update_beyond_the_end_is_moved_back_inside() -> None:
    chain = Chain()
    chain.update(4, chain.given(rows=2))
    chain.update(-3, chain.given())
    assert len(chain.fused().operators[0].inputs) == 3


def test_columns_are_an_axis_too() -> None:
    chain = Chain()
    chain.update(0, chain.given(rows=5, width=1), column=1)
    graph = chain.fused()
    assert codes(graph) == ["CONCATENATION"] and graph.operators[0].options.axis == 1


def test_an_update_of_all() -> None:
    chain = Chain()
    chain.update(0, chain.given(rows=5))
    assert codes(chain.fused()) == ["RESHAPE"]


def test_a_box_inside_is_no_row() -> None:
    chain = Chain()
    chain.update(1, chain.given(rows=2, width=2))
    assert codes(chain.fused()) == ["DYNAMIC_UPDATE_SLICE"]


def test_bytes_are_copied_whatever_they_mean() -> None:
    chain = Chain(rows=2)
    chain.update(0, chain.given(scale=0.3))
    chain.update(1, chain.given())
    assert codes(chain.fused()) == ["RESHAPE", "CONCATENATION"]


def test_what_others_read_in_between_is_made() -> None:
    chain = Chain(rows=2)
    chain.update(0, chain.given())
    seen = chain.tensor(2)
    chain.g.op("RELU", [chain.y], [seen])
    chain.update(1, chain.given())
    assert codes(chain.fused(seen, chain.y)) == ["CONCATENATION", "RELU", "CONCATENATION"]


def test_what_nobody_reads_goes() -> None:
    chain = Chain(rows=2)
    part = chain.given()
    chain.update(0, part)
    other = chain.tensor(1)
    chain.g.op("RELU", [part], [other])
    assert codes(chain.fused(other)) == ["RELU"]
