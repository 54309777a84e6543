"""Sizes that follow from inputs are those that LiteRT computes, whatever the file states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

import openneutron
from openneutron.litert import DType, GraphBuilder, write_model
from openneutron.litert.graph import Model
from openneutron.litert.passes.fold_constants import compute_constants
from openneutron.litert.passes.resolve_shape import resolve_shape

Case = tuple[list[Any], dict[str, Any]]

F, W = (1, 9, 7, 4), np.zeros((6, 3, 2, 4), np.float32)
WINDOW: dict[str, Any] = {"padding": "VALID", "stride_h": 2, "stride_w": 1}
# Shapes of computed inputs as tuples, constants as arrays.
CASES: dict[str, tuple[str, list[Any], dict[str, Any], int]] = {
    "same shape": ("TANH", [(1, 5, 3)], {}, 3),
    "two shapes": ("ADD", [(1, 5, 1), (3,)], {}, 3),
    "convolution": ("CONV_2D", [F, W, np.zeros(6, np.float32)], WINDOW, 4),
    "convolution, padded": (
        "CONV_2D", [F, W, np.zeros(6, np.float32)], {"padding": "SAME", "stride_h": 2, "stride_w": 3}, 4,
    ),
    "convolution, dilated": (
        "CONV_2D", [F, W, np.zeros(6, np.float32)], {"padding": "VALID", "stride_h": 1, "stride_w": 1,
                                                    "dilation_h_factor": 3, "dilation_w_factor": 2}, 4,
    ),
    "depthwise": (
        "DEPTHWISE_CONV_2D", [F, np.zeros((1, 3, 3, 8), np.float32), np.zeros(8, np.float32)],
        {**WINDOW, "depth_multiplier": 2}, 4,
    ),
    "pool": ("MAX_POOL_2D", [F], {**WINDOW, "filter_height": 3, "filter_width": 2}, 4),
    "rows of a table": ("GATHER", [(1, 5, 3), np.array([[0, 2], [1, 1]], np.int32)], {"axis": 1}, 4),
    "stacked": ("PACK", [(2, 3), (2, 3)], {"values_count": 2, "axis": 1}, 3),
    "joined": ("CONCATENATION", [(2, 3), (2, 4)], {"axis": -1}, 2),
    "without ones": ("SQUEEZE", [(1, 3, 1, 2)], {"squeeze_dims": [2]}, 3),
    "moved": ("TRANSPOSE", [(1, 5, 3), np.array([0, 2, 1], np.int32)], {}, 3),
    "padded": ("PAD", [(1, 5, 3), np.array([[0, 0], [1, 2], [0, 0]], np.int32)], {}, 3),
    "averaged": ("MEAN", [F, np.array([1, 2], np.int32)], {"keep_dims": False}, 2),
    "product": ("BATCH_MATMUL", [(2, 5, 3), (2, 3, 4)], {"adj_x": False, "adj_y": False}, 3),
    "layer": ("FULLY_CONNECTED", [(2, 5, 3), np.zeros((4, 3), np.float32)], {"keep_num_dims": True}, 3),
    "rows": ("FULLY_CONNECTED", [(2, 5, 3), np.zeros((4, 3), np.float32)], {}, 2),
}  # fmt: skip


def stated_as_ones(code: str, given: list[Any], options: dict[str, Any], rank: int) -> tuple[Model, int]:
    """A model of one operator whose result may have any size, and states ones."""
    g = GraphBuilder()
    inputs, flowing = [], []
    for at, one in enumerate(given):
        if isinstance(one, tuple):
            flowing.append(g.tensor(f"x{at}", one, DType.FLOAT32))
            inputs.append(flowing[-1])
        else:
            dtype = DType.INT32 if one.dtype == np.int32 else DType.FLOAT32
            inputs.append(g.tensor(f"c{at}", one.shape, dtype, data=one))
    y = g.tensor("y", (1,) * rank, DType.FLOAT32)
    g.op(code, [*inputs, *([-1] if code == "FULLY_CONNECTED" else [])], [y], **options)
    g.graph.tensors[y].shape_signature = (-1,) * rank
    return g.finish(flowing, [y]), y


@pytest.mark.parametrize("name", CASES)
def test_shapes_are_litert_s(name: str) -> None:
    model, y = stated_as_ones(*CASES[name])
    interpreter = Interpreter(model_content=write_model(model))
    interpreter.allocate_tensors()
    assert resolve_shape(model.main, model.main.operators[0])
    assert model.main.tensors[y].shape == tuple(interpreter.get_output_details()[0]["shape"])


@pytest.mark.parametrize(
    ("code", "given", "options", "rank"),
    [
        ("MAX_POOL_2D", [(1, 2, 2, 4)], {**WINDOW, "filter_height": 3, "filter_width": 2}, 4),
        ("ADD", [(1, 5), (3,)], {}, 2),
        ("CONCATENATION", [(2, 3), (3, 4)], {"axis": -1}, 2),
        ("SQUEEZE", [(1, 3)], {"squeeze_dims": [1]}, 1),
        ("FULLY_CONNECTED", [(2, 5), np.zeros((4, 3), np.float32)], {}, 2),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)  # fmt: skip
def test_inputs_that_contradict_each_other_leave_the_file_s(
    code: str, given: list[Any], options: Any, rank: int
) -> None:
    model, y = stated_as_ones(code, given, options, rank)
    assert not resolve_shape(model.main, model.main.operators[0])
    assert model.main.tensors[y].shape == (1,) * rank


def frames() -> Model:
    """Overlapping frames of a sound of any length, as `tf.signal.frame` has them, and a layer on each."""
    g = GraphBuilder()

    def constant(values: Any) -> int:
        array = np.asarray(values, np.int32)
        return g.tensor(f"c{len(g.graph.tensors)}", array.shape, DType.INT32, data=array)

    def whole(name: str, *shape: int) -> int:
        return g.tensor(name, shape, DType.INT32)

    def real(name: str, *shape: int) -> int:
        return g.tensor(name, shape, DType.FLOAT32)

    x = real("x", 1, 64)
    s, batch, length, steps, starts = (
        whole(name, size) for name, size in (("s", 2), ("batch", 1), ("length", 1), ("steps", 1), ("starts", 1))
    )
    number, some, reach = whole("number"), whole("some"), whole("reach")
    g.op("SHAPE", [x], [s], out_type=2)
    g.op("SPLIT_V", [s, constant([1, 1]), constant(0)], [batch, length], num_splits=2)
    g.op("RESHAPE", [length, constant([])], [number])
    g.op("SUB", [number, constant(16)], [reach])
    g.op("FLOOR_DIV", [reach, constant(8)], [some])
    g.op("RANGE", [constant(0), some, constant(1)], [steps])
    g.op("MUL", [steps, constant(8)], [starts])
    column, places, framed, y = (
        whole("column", 1, 1),
        whole("places", 1, 16),
        real("framed", 1, 1, 16),
        real("y", 1, 1, 4),
    )
    g.op("EXPAND_DIMS", [starts, constant(-1)], [column])
    g.op("ADD", [column, constant([list(range(16))])], [places])
    g.op("GATHER", [x, places], [framed], axis=1)
    w = g.tensor("w", (4, 16), DType.FLOAT32, data=np.random.default_rng(0).normal(size=(4, 16)).astype(np.float32))
    g.op("FULLY_CONNECTED", [framed, w, -1], [y], keep_num_dims=True)
    for at, signature in (
        (x, (-1, 64)), (steps, (-1,)), (starts, (-1,)), (column, (-1, 1)), (places, (-1, 16)), (framed, (-1, -1, 16)),
        (y, (-1, -1, 4)),
    ):  # fmt: skip
        g.graph.tensors[at].shape_signature = signature
    return g.finish([x], [y])


def test_the_number_of_frames_is_computed() -> None:
    model = frames()
    given = np.random.default_rng(1).normal(size=(1, 64)).astype(np.float32)

    def run(data: bytes) -> Any:
        interpreter = Interpreter(model_content=data)
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], given)
        interpreter.invoke()
        return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])

    wanted = run(write_model(model))
    assert compute_constants(model.main) == 9
    assert [op.label for op in model.main.operators] == ["GATHER", "FULLY_CONNECTED"]
    assert model.main.tensors[model.main.outputs[0]].shape == wanted.shape == (1, 6, 4)
    np.testing.assert_array_equal(run(write_model(model)), wanted)


def test_a_float_model_is_quantized_with_its_real_sizes() -> None:
    rng = np.random.default_rng(2)
    samples = [rng.normal(size=(1, 64)).astype(np.float32) for _ in range(8)]
    program = openneutron.compile(write_model(frames()), calibration=samples, quality="plain")
    assert [one.code for one in program.verdicts if not one.delegated] == []
    assert program.report.output_sqnr is not None and program.report.output_sqnr > 30
