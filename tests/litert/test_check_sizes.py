"""Sizes: each operator with constants that say how large its result is, right, with another result, and impossible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from openneutron.cli.main import run as openneutron
from openneutron.errors import FormatError
from openneutron.litert import DType, GraphBuilder, read_model, write_model

Shapes = Sequence[tuple[int, ...]]
Case = tuple[str, tuple[int, ...], list[Sequence[int]], Shapes, dict[str, Any]]

CASES: dict[str, Case] = {
    "RESHAPE": ("RESHAPE", (2, 6), [[3, -1]], [(3, 4)], {}),
    "BROADCAST_TO": ("BROADCAST_TO", (1, 6), [[4, 6]], [(4, 6)], {}),
    "PAD": ("PAD", (2, 6), [[1, 0, 2, 3]], [(3, 11)], {}),
    "PADV2": ("PADV2", (2, 6), [[1, 0, 2, 3], [0]], [(3, 11)], {}),
    "MIRROR_PAD": ("MIRROR_PAD", (2, 6), [[1, 0, 2, 3]], [(3, 11)], {}),
    "SLICE": ("SLICE", (4, 6), [[1, 2], [2, -1]], [(2, 4)], {}),
    "STRIDED_SLICE": ("STRIDED_SLICE", (4, 6), [[0, 5], [4, 0], [2, -2]], [(2, 3)], {}),
    "STRIDED_SLICE, shrunk": ("STRIDED_SLICE", (4, 6), [[1, 0], [2, 6], [1, 1]], [(6,)], {"shrink_axis_mask": 1}),
    "STRIDED_SLICE, new axis": ("STRIDED_SLICE", (4, 6), [[0, 1], [0, 3], [1, 1]], [(1, 2, 6)], {"new_axis_mask": 1}),
    "STRIDED_SLICE, dots": ("STRIDED_SLICE", (4, 5, 6), [[0, 1], [0, 3], [1, 1]], [(4, 5, 2)], {"ellipsis_mask": 1}),
    "STRIDED_SLICE, masks": (
        "STRIDED_SLICE",
        (4, 6),
        [[3, 3], [0, 0], [1, -1]],
        [(4, 6)],
        {"begin_mask": 3, "end_mask": 3},
    ),
    "RESIZE_BILINEAR": ("RESIZE_BILINEAR", (1, 2, 3, 4), [[5, 7]], [(1, 5, 7, 4)], {}),
    "RESIZE_NEAREST_NEIGHBOR": ("RESIZE_NEAREST_NEIGHBOR", (1, 2, 3, 4), [[5, 7]], [(1, 5, 7, 4)], {}),
    "TILE": ("TILE", (2, 6), [[3, 1]], [(6, 6)], {}),
    "SPLIT_V": ("SPLIT_V", (4, 6), [[1, -1, 2], [1]], [(4, 1), (4, 3), (4, 2)], {"num_splits": 3}),
    "TRANSPOSE": ("TRANSPOSE", (2, 3, 4), [[2, 0, 1]], [(4, 2, 3)], {}),
    "EXPAND_DIMS": ("EXPAND_DIMS", (2, 3), [[-1]], [(2, 3, 1)], {}),
    "MEAN": ("MEAN", (2, 3, 4), [[1, -1]], [(2, 1, 1)], {"keep_dims": True}),
    "SUM": ("SUM", (2, 3, 4), [[1]], [(2, 4)], {}),
    "REDUCE_MAX": ("REDUCE_MAX", (2, 3, 4), [[0, 1, 2]], [()], {}),
    "SPACE_TO_BATCH_ND": ("SPACE_TO_BATCH_ND", (1, 3, 4, 2), [[2, 2], [1, 0, 0, 0]], [(4, 2, 2, 2)], {}),
    "BATCH_TO_SPACE_ND": ("BATCH_TO_SPACE_ND", (4, 2, 2, 2), [[2, 2], [1, 0, 0, 0]], [(1, 3, 4, 2)], {}),
}


def built(case: Case, *, open_input: bool = False) -> bytes:
    code, shape, constants, results, options = case
    g = GraphBuilder()
    x = g.tensor("x", shape, DType.INT8, scale=0.5, zero_point=0)
    given = [x]
    for at, values in enumerate(constants):
        wide = len(values) // 2 if "PAD" in code or (at == 1 and "BATCH" in code) else 0
        data = np.array(values, np.int32).reshape((wide, 2) if wide else (len(values),))
        kind = DType.INT8 if code == "PADV2" and at == 1 else DType.INT32
        given.append(g.tensor(f"sizes{at}", data.shape, kind, data=data.astype(kind.numpy)))
    outputs = [g.tensor(f"y{at}", one, DType.INT8, scale=0.5, zero_point=0) for at, one in enumerate(results)]
    g.op(code, given, outputs, **options)
    model = g.finish([x], outputs)
    if open_input:
        model.main.tensors[0].shape_signature = (-1, *shape[1:])
    return write_model(model)


def grown(results: Shapes) -> Shapes:
    return [*results[:-1], (*results[-1], 2)]


def exchanged(results: Shapes) -> Shapes:
    """As many elements under another shape."""
    return [*results[:-1], (1, *results[-1])]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_right_sizes_are_taken(case: Case) -> None:
    read_model(built(case))


@pytest.mark.parametrize("change", [grown, exchanged])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_another_declared_shape_is_refused(case: Case, change: Callable[[Shapes], Shapes]) -> None:
    code, shape, constants, results, options = case
    with pytest.raises(
        FormatError, match=rf"m\.tflite, graph 0, operator 0 \({code}\): its constants make.*'y\d'\) is declared"
    ):
        read_model(built((code, shape, constants, change(results), options)), source="m.tflite")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_sizes_that_the_file_leaves_open_are_not_compared(case: Case) -> None:
    code, shape, constants, results, options = case
    read_model(built((code, shape, constants, grown(results), options), open_input=True))


IMPOSSIBLE: dict[str, Case] = {
    "elements": ("RESHAPE", (2, 6), [[5, 2]], [(5, 2)], {}),
    "rest": ("RESHAPE", (2, 6), [[5, -1]], [(5, 2)], {}),
    "two rests": ("RESHAPE", (2, 6), [[-1, -1]], [(3, 4)], {}),
    "broadcast": ("BROADCAST_TO", (3, 6), [[4, 6]], [(4, 6)], {}),
    "paddings of another rank": ("PAD", (2, 6), [[1, 0]], [(3, 6)], {}),
    "negative padding": ("PAD", (2, 6), [[-1, 0, 0, 0]], [(1, 6)], {}),
    "slice outside": ("SLICE", (4, 6), [[3, 0], [2, 6]], [(2, 6)], {}),
    "stride of zero": ("STRIDED_SLICE", (4, 6), [[0, 0], [4, 6], [0, 1]], [(4, 6)], {}),
    "index outside": ("STRIDED_SLICE", (4, 6), [[4], [5], [1]], [(6,)], {"shrink_axis_mask": 1}),
    "order": ("TRANSPOSE", (2, 3), [[0, 0]], [(2, 2)], {}),
    "no such axis": ("MEAN", (2, 3), [[2]], [(2, 3)], {}),
    "parts": ("SPLIT_V", (4, 6), [[1, 2], [1]], [(4, 1), (4, 2)], {"num_splits": 2}),
    "blocks": ("SPACE_TO_BATCH_ND", (1, 3, 4, 2), [[2, 2], [0, 0, 0, 0]], [(4, 1, 2, 2)], {}),
}


@pytest.mark.parametrize("case", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_cannot_be_done_is_refused(case: Case) -> None:
    with pytest.raises(FormatError, match=rf"graph 0, operator 0 \({case[0]}\): .*tensor 'sizes0'"):
        read_model(built(case), source="m.tflite")


@pytest.mark.parametrize(("code", "given"), [("FILL", [4, 6]), ("TRANSPOSE_CONV", [1, 4, 4, 3])])
def test_shapes_given_first(code: str, given: list[int]) -> None:
    g = GraphBuilder()
    shape = g.tensor("shape", (len(given),), DType.INT32, data=np.array(given, np.int32))
    y = g.tensor("y", (*given[:-1], 5), DType.INT8, scale=0.5, zero_point=0)
    x = g.tensor("x", (1, 4, 4, 2) if code == "TRANSPOSE_CONV" else (), DType.INT8, scale=0.5, zero_point=0)
    w = g.tensor("w", (3, 1, 1, 2), DType.INT8, scale=0.5, zero_point=0, data=np.zeros((3, 1, 1, 2), np.int8))
    g.op(code, [shape, w, x] if code == "TRANSPOSE_CONV" else [shape, x], [y])
    with pytest.raises(
        FormatError, match=rf"operator 0 \({code}\): its constants make a result of .*'y'\) is declared as"
    ):
        read_model(write_model(g.finish([x], [y])))


@pytest.mark.parametrize("command", ["compile", "run", "inspect", "fits", "report"])
def test_every_command_says_so(command: str, tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    code, shape, constants, results, options = CASES["RESHAPE"]
    path = tmp_path / "m.tflite"
    path.write_bytes(built((code, shape, constants, grown(results), options)))
    made = ["-o", str(tmp_path / "out.tflite")] if command == "compile" else []
    assert openneutron([command, str(path), *made]) != 0
    said = capsys.readouterr()
    assert "operator 0 (RESHAPE): its constants make a result of [3, 4], tensor 2 ('y0')" in said.out + said.err
    assert not (tmp_path / "out.tflite").exists()
