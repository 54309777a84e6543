from __future__ import annotations

import numpy as np
import pytest

from openneutron.executorch.lower.values import Layouts, Value, channels_last, plain
from openneutron.litert.build import GraphBuilder
from openneutron.litert.graph import DType, Quantization

Q = Quantization((0.5,), (3,))


class Recorder:
    """Layouts over a builder that remembers what was emitted."""

    def __init__(self, convert_inside: bool = False) -> None:
        self.builder = GraphBuilder()
        self.codes: list[str] = []
        self.layouts = Layouts(self.builder, self.emit, convert_inside=convert_inside)

    def emit(self, code: str, inputs: list[int], outputs: list[int], **options: object) -> None:
        self.codes.append(code)
        self.builder.op(code, inputs, outputs, **options)

    def shape(self, tensor: int) -> tuple[int, ...]:
        return self.builder.graph.tensors[tensor].shape

    def made(self, shape: tuple[int, ...], order: tuple[int, ...]) -> Value:
        return self.layouts.produce("v", shape, order, DType.INT8, Q)[0]


def test_an_order_is_transposed_once_and_kept() -> None:
    r = Recorder()
    value = r.made((1, 3, 4, 5), channels_last(4))
    first = r.layouts.tensor(value, plain(4))
    assert r.shape(first) == (1, 3, 4, 5) and r.codes == ["TRANSPOSE"]
    assert r.layouts.tensor(value, plain(4)) == first
    r.layouts.tensor(value, channels_last(4))
    assert r.codes == ["TRANSPOSE"]


@pytest.mark.parametrize("shape", [(1, 1, 4, 5), (2, 7, 1, 1), (1, 1, 1, 1)])
def test_one_channel_or_one_pixel_only_changes_shape(shape: tuple[int, ...]) -> None:
    r = Recorder()
    r.layouts.tensor(r.made(shape, channels_last(4)), plain(4))
    assert "TRANSPOSE" not in r.codes


def test_a_permuted_view_costs_nothing_until_it_is_read() -> None:
    r = Recorder()
    value = r.made((1, 3, 4, 5), channels_last(4)).permute((0, 2, 3, 1))
    assert value.shape == (1, 4, 5, 3) and not r.codes
    assert r.shape(r.layouts.tensor(value, plain(4))) == (1, 4, 5, 3)
    assert not r.codes


def test_ones_come_and_go_without_moving_data() -> None:
    r = Recorder()
    signal = r.made((2, 3, 8), channels_last(3))
    wide = signal.with_ones((2, 3, 1, 8))
    assert wide is not None and r.shape(r.layouts.tensor(wide, channels_last(4))) == (2, 1, 8, 3)
    assert r.codes == ["RESHAPE"]
    assert signal.with_ones((2, 3, 2, 4)) is None


@pytest.mark.parametrize(
    "convert_inside, shape, layout, codes", [(False, (1, 4, 5, 3), 1, []), (True, (1, 3, 4, 5), 0, ["TRANSPOSE"])]
)
def test_program_input_takes_the_wanted_layout_unless_converted_inside(
    convert_inside: bool, shape: tuple[int, ...], layout: int, codes: list[str]
) -> None:
    r = Recorder(convert_inside)
    value = r.layouts.program_input("x", (1, 3, 4, 5), DType.INT8, Q, channels_last=False)
    r.layouts.tensor(value, channels_last(4))
    ((entry, found),) = r.layouts.formats.items()
    assert (r.shape(entry), found, r.codes) == (shape, layout, codes)


def test_channels_last_program_input_needs_nothing() -> None:
    for convert_inside in (False, True):
        r = Recorder(convert_inside)
        value = r.layouts.program_input("x", (1, 3, 4, 5), DType.INT8, Q, channels_last=True)
        assert r.shape(r.layouts.tensor(value, channels_last(4))) == (1, 4, 5, 3)
        assert not r.codes and list(r.layouts.formats.values()) == [1]


@pytest.mark.parametrize(
    "stored, asked, convert_inside, layout, codes",
    [
        ("last", False, False, 1, []),
        ("last", False, True, 0, ["TRANSPOSE"]),
        ("last", True, False, 1, []),
        ("plain", False, False, 0, []),
        ("plain", True, False, 1, ["TRANSPOSE"]),
    ],
)
def test_output_leaves_as_the_program_stores_it_or_the_delegate_transposes(
    stored: str, asked: bool, convert_inside: bool, layout: int, codes: list[str]
) -> None:
    r = Recorder(convert_inside)
    value = r.made((1, 3, 4, 5), channels_last(4) if stored == "last" else plain(4))
    assert r.layouts.output(value, channels_last=asked)[1] == layout and r.codes == codes


def test_constants_are_reordered_not_transposed() -> None:
    r = Recorder()
    data = np.arange(24, dtype=np.int8).reshape(2, 3, 4)
    q = Quantization((0.5, 0.25), (0, 0), axis=0)
    value = r.layouts.constant("w", data, DType.INT8, q).permute((2, 0, 1))
    tensor = r.builder.graph.tensors[r.layouts.tensor(value, (1, 2, 0))]
    np.testing.assert_array_equal(tensor.data, data)
    assert tensor.quantization is not None and tensor.quantization.axis == 0 and value.channel_axis == 1
    assert not r.codes
