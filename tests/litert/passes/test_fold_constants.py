"""Folding: shape arithmetic of models with an open batch, moves of constants, and what must not be folded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import OpResolverType

from openneutron.convert import convert
from openneutron.litert import DType, GraphBuilder, read_model, write_model
from openneutron.litert.graph import Graph, Model
from openneutron.litert.passes.close_shapes import close_shapes
from openneutron.litert.passes.constant_values import LARGEST
from openneutron.litert.passes.fold_constants import fold_constants
from openneutron.options import Options
from openneutron.run.runner import LiteRtRunner, random_inputs
from tests.golden import interpret


def constant(g: GraphBuilder, values: Any, dtype: DType = DType.INT32) -> int:
    array = np.asarray(values)
    return g.tensor(f"c{len(g.graph.tensors)}", array.shape, dtype, data=array)


def open_batch() -> Model:
    """What converters write for Flatten when the batch may have any size."""
    g = GraphBuilder()
    x = g.tensor("x", (1, 4, 4, 8), DType.INT8, 0.1, 3)
    r = g.tensor("r", (1, 4, 4, 8), DType.INT8, 0.1, 3)
    g.op("RELU", [x], [r])
    s, n, p = (g.tensor(name, shape, DType.INT32) for name, shape in (("s", (4,)), ("n", ()), ("p", (2,))))
    g.op("SHAPE", [r], [s], out_type=2)
    g.op("STRIDED_SLICE", [s, *(constant(g, [v]) for v in (0, 1, 1))], [n], shrink_axis_mask=1)
    g.op("PACK", [n, constant(g, 128)], [p], values_count=2, axis=0)
    y = g.tensor("y", (1, 128), DType.INT8, 0.1, 3)
    g.op("RESHAPE", [r, p], [y])
    z = g.tensor("z", (1, 128), DType.INT8, 0.1, -5)
    g.op("ABS", [y], [z])
    for index, signature in ((x, (-1, 4, 4, 8)), (r, (-1, 4, 4, 8)), (y, (-1, 128)), (z, (-1, 128))):
        g.graph.tensors[index].shape_signature = signature
    return g.finish([x], [z])


def test_the_shape_arithmetic_of_an_open_batch_disappears() -> None:
    data = write_model(open_batch())
    result = convert(data, Options())
    assert [op.label for op in read_model(result.model).main.operators] == ["NeutronGraph"]
    assert all(op.converted for op in result.report.operators)
    assert [op.code for op in result.report.operators if op.graph < 0] == ["SHAPE", "STRIDED_SLICE", "PACK"]
    assert "any size [-1, 4, 4, 8] is compiled for [1, 4, 4, 8]" in result.report.notes[-1]
    assert all(tensor.shape_signature is None for tensor in read_model(result.model).main.tensors)
    inputs = random_inputs(LiteRtRunner(data).inputs, seed=3)
    ours, reference = LiteRtRunner(result.model).run(inputs), LiteRtRunner(data).run(inputs)
    assert np.array_equal(ours.outputs["z"], reference.outputs["z"])


def test_a_model_that_stays_whole_keeps_its_open_sizes() -> None:
    g = GraphBuilder()
    x, y = (g.tensor(name, (1, 4), DType.FLOAT32) for name in "xy")
    g.graph.tensors[x].shape_signature = (-1, 4)
    g.op("NEG", [x], [y])
    result = convert(write_model(g.finish([x], [y])), Options())
    assert read_model(result.model).main.tensors[0].shape_signature == (-1, 4)


def test_sizes_stated_twice_are_not_open() -> None:
    graph = open_batch().main
    graph.tensors[0].shape_signature = (1, 4, 4, 8)
    assert close_shapes(graph) == ()
    assert graph.tensors[0].shape_signature == (1, 4, 4, 8)


MOVES: dict[str, tuple[str, list[Any], list[tuple[int, ...]], dict[str, Any]]] = {
    "concatenation": ("CONCATENATION", [[[1, 2]], [[3, 4]]], [(1, 4)], {"axis": 1}),
    "gather": ("GATHER", [[5, 6, 7], [2, 0]], [(2,)], {"axis": 0}),
    "pack": ("PACK", [[1, 2], [3, 4]], [(2, 2)], {"values_count": 2, "axis": 1}),
    "unpack": ("UNPACK", [[[1, 2], [3, 4]]], [(2,), (2,)], {"num": 2, "axis": 1}),
    "slice": ("SLICE", [[1, 2, 3, 4], [1], [-1]], [(3,)], {}),
    "split": ("SPLIT", [0, [1, 2, 3, 4]], [(2,), (2,)], {"num_splits": 2}),
    "strided slice, backwards": ("STRIDED_SLICE", [[1, 2, 3, 4], [3], [0], [-2]], [(2,)], {}),
    "strided slice, masks": (
        "STRIDED_SLICE", [[[1, 2], [3, 4]], [0, 1], [0, 2], [1, 1]], [(2,)],
        {"begin_mask": 1, "end_mask": 1, "shrink_axis_mask": 2},
    ),
    "tile": ("TILE", [[[1, 2]], [2, 2]], [(2, 4)], {}),
    "transpose": ("TRANSPOSE", [[[1, 2, 3], [4, 5, 6]], [1, 0]], [(3, 2)], {}),
    "reshape": ("RESHAPE", [[[1, 2], [3, 4]], [4]], [(4,)], {}),
    "expand": ("EXPAND_DIMS", [[1, 2], 0], [(1, 2)], {}),
    "squeeze": ("SQUEEZE", [[[1, 2]]], [(2,)], {"squeeze_dims": [0]}),
    "broadcast": ("BROADCAST_TO", [[[1], [2]], [2, 3]], [(2, 3)], {}),
    "fill": ("FILL", [[2, 3], 7], [(2, 3)], {}),
    "range": ("RANGE", [2, 11, 3], [(3,)], {}),
    "sum": ("ADD", [[1, -2], [5]], [(2,)], {}),
    "difference": ("SUB", [[1, -2], [5]], [(2,)], {}),
    "product": ("MUL", [[1, -2], [5]], [(2,)], {}),
    "quotient": ("FLOOR_DIV", [[7, -7], [2]], [(2,)], {}),
    "remainder": ("FLOOR_MOD", [[7, -7], [2]], [(2,)], {}),
    "larger": ("MAXIMUM", [[7, -7], [2]], [(2,)], {}),
    "product of all": ("REDUCE_PROD", [[2, 3, 4], [0]], [()], {"keep_dims": False}),
}  # fmt: skip


@pytest.mark.parametrize(("code", "inputs", "shapes", "options"), MOVES.values(), ids=MOVES)
def test_a_folded_value_is_litert_s_own(
    code: str, inputs: list[Any], shapes: list[tuple[int, ...]], options: dict[str, Any]
) -> None:
    g = GraphBuilder()
    given = [constant(g, values) for values in inputs]
    made = [g.tensor(f"y{at}", shape, DType.INT32) for at, shape in enumerate(shapes)]
    g.op(code, given, made, **options)
    ends = [g.tensor(f"end{at}", shape, DType.INT32) for at, shape in enumerate(shapes)]
    for value, end in zip(made, ends, strict=True):
        g.op("RESHAPE", [value], [end], new_shape=list(g.graph.tensors[end].shape))
    model = g.finish([], ends)
    wanted = interpret(write_model(model), [], OpResolverType.BUILTIN_REF)
    assert fold_constants(model.main) == {0}
    for index, value in zip(made, wanted, strict=True):
        data = model.main.tensors[index].data
        assert data is not None and data.dtype == np.int32 and np.array_equal(data, value)


def one(code: str, inputs: list[Any], shape: tuple[int, ...], dtype: DType = DType.INT32, **options: Any) -> Graph:
    g = GraphBuilder()
    given = [constant(g, values) for values in inputs]
    y, z = (g.tensor(name, shape, dtype) for name in "yz")
    g.op(code, given, [y], **options)
    g.op("RESHAPE", [y], [z], new_shape=list(shape))
    return g.finish([], [z]).main


def absent_inputs() -> Graph:
    graph = one("PACK", [1, 2], (2,), values_count=2, axis=0)
    graph.operators[0].inputs[0] = -1
    return graph


NOT_FOLDED: dict[str, Graph] = {
    "a gigantic fill": one("FILL", [[1 << 30, 1 << 30], 1], (1 << 30, 1 << 30)),
    "a size that is not the output's": one("FILL", [[LARGEST, LARGEST], 1], (2,)),
    "an index outside": one("GATHER", [[1, 2], [2]], (1,), axis=0),
    "a negative index": one("GATHER", [[1, 2], [-1]], (1,), axis=0),
    "another type": one("PACK", [1, 2], (2,), DType.INT64, values_count=2, axis=0),
    "another shape": one("PACK", [1, 2], (1,), values_count=2, axis=0),
    "an axis outside": one("CONCATENATION", [[1], [2]], (2,), axis=7),
    "division by zero": one("FLOOR_DIV", [[1, 2], [0]], (2,)),
    "no permutation": one("TRANSPOSE", [[[1, 2]], [0, 0]], (1, 2)),
    "a step of zero": one("STRIDED_SLICE", [[1, 2], [0], [2], [0]], (2,)),
    "a fused activation": one("ADD", [[-1], [2]], (1,), fused_activation_function="RELU"),
    "an absent input": absent_inputs(),
}


@pytest.mark.parametrize("graph", NOT_FOLDED.values(), ids=NOT_FOLDED)
def test_what_is_wrong_is_left_to_the_operator_s_own_reason(graph: Graph) -> None:
    assert 0 not in fold_constants(graph)


def test_graph_outputs_are_still_computed() -> None:
    g = GraphBuilder()
    x, s = g.tensor("x", (1, 4), DType.INT8, 0.1, 0), g.tensor("s", (2,), DType.INT32)
    g.op("SHAPE", [x], [s])
    assert fold_constants(g.finish([x], [s]).main) == set()


def test_values_with_another_meaning_are_not_moved() -> None:
    g = GraphBuilder()
    w = g.tensor("w", (2, 3), DType.INT8, 0.1, 0, data=np.zeros((2, 3), np.int8))
    order = constant(g, [1, 0])
    y, z = (g.tensor(name, (3, 2), DType.INT8, 0.2, 0) for name in "yz")
    g.op("TRANSPOSE", [w, order], [y])
    g.op("RELU", [y], [z])
    assert fold_constants(g.finish([], [z]).main) == set()


def vectors_of_unknown_number(keep: bool = False) -> Model:
    """What converters write for a dense layer on images when the batch may have any size."""
    g = GraphBuilder()
    x = g.tensor("x", (1, 2, 3, 4), DType.INT8, 0.1, 3)
    s, n, p, q = (g.tensor(name, (size,), DType.INT32) for name, size in (("s", 4), ("n", 3), ("p", 2), ("q", 4)))
    g.op("SHAPE", [x], [s], out_type=2)
    g.op("GATHER", [s, constant(g, [0, 1, 2])], [n], axis=0)
    total, width = g.tensor("total", (), DType.INT32), constant(g, 4)
    g.op("REDUCE_PROD", [n, constant(g, [0])], [total], keep_dims=False)
    g.op("PACK", [total, width], [p], values_count=2, axis=0)
    flat = g.tensor("flat", (1, 1), DType.INT8, 0.1, 3)
    g.op("RESHAPE", [x, p], [flat])
    rng = np.random.default_rng(0)
    w = g.tensor("w", (5, 4), DType.INT8, 0.02, 0, data=rng.integers(-127, 128, (5, 4), np.int8))
    dense = g.tensor("dense", (1, 5), DType.INT8, 0.2, -3)
    g.op("FULLY_CONNECTED", [flat, w, -1], [dense], keep_num_dims=keep)
    relu = g.tensor("relu", (1, 5), DType.INT8, 0.2, -3)
    g.op("RELU", [dense], [relu])
    g.op("CONCATENATION", [n, constant(g, [5])], [q], axis=0)
    y = g.tensor("y", (1, 2, 3, 5), DType.INT8, 0.2, -3)
    g.op("RESHAPE", [relu, q], [y])
    for index, signature in (
        (x, (-1, 2, 3, 4)),
        (flat, (-1, -1)),
        (dense, (-1, 5)),
        (relu, (-1, 5)),
        (y, (-1, 2, 3, 5)),
    ):
        g.graph.tensors[index].shape_signature = signature
    return g.finish([x], [y])


@pytest.mark.parametrize("keep", [False, True])
def test_sizes_that_follow_from_the_inputs_are_found(keep: bool) -> None:
    data = write_model(vectors_of_unknown_number(keep))
    result = convert(data, Options())
    assert [op.label for op in read_model(result.model).main.operators] == ["NeutronGraph"]
    inputs = random_inputs(LiteRtRunner(data).inputs, seed=5)
    ours, reference = LiteRtRunner(result.model).run(inputs), LiteRtRunner(data).run(inputs)
    assert np.array_equal(ours.outputs["y"], reference.outputs["y"])


@pytest.mark.parametrize("sizes", [[-1, -1], [-2, 4], [0, 4], [7, 4], [2, 3, 4]], ids=str)
def test_a_shape_that_does_not_follow_stays_the_file_s(sizes: list[int]) -> None:
    g = GraphBuilder()
    x, y = g.tensor("x", (1, 6, 4), DType.INT8, 0.1, 3), g.tensor("y", (1, 1), DType.INT8, 0.1, 3)
    g.op("RESHAPE", [x, constant(g, sizes)], [y])
    g.graph.tensors[y].shape_signature = (-1, -1)
    graph = g.finish([x], [y]).main
    fold_constants(graph)
    assert graph.tensors[y].shape == (1, 1)
