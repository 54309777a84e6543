"""Shapes of inputs with the user's sizes."""

from __future__ import annotations

import pytest
import torch
from onnx import TensorProto

from openneutron.errors import OpenNeutronError, OptionError
from openneutron.onnx.sizes import open_dimensions, parse_sizes, resolve
from tests.onnx.models import model, node


def made(shape: list[int | str | None], **types: int) -> object:
    return model([node("Relu", ["x"], ["y"])], {"x": shape}, ["y"], types=types)


def test_sizes_of_the_command_line() -> None:
    assert parse_sizes(["batch=1", "x=1,3,48,192"]) == {"batch": 1, "x": (1, 3, 48, 192)}
    for text in ("batch", "=3", "x=1,,2", "x=0", "x=a", "x=-1"):
        with pytest.raises(OptionError, match="write batch=1 or input=1,3,48,192"):
            parse_sizes([text])


def test_open_dimensions_are_filled_by_name_or_by_shape() -> None:
    opened = made(["batch", 3, "height", None])
    assert open_dimensions(opened) == {"x": ["batch", 3, "height", "?"]}
    inputs, notes = resolve(opened, {"x": (2, 3, 8, 9)}, where="m")
    assert inputs[0].shape == (2, 3, 8, 9) and not notes
    inputs, notes = resolve(made(["batch", 3, "height"]), {"height": 8}, where="m")
    assert inputs[0].shape == (1, 3, 8)
    assert notes == ("input `x`: the open first dimension `batch` is 1",)
    assert resolve(made(["n"]), {"x": 5}, where="m")[0][0].shape == (5,)


@pytest.mark.parametrize(
    ("shape", "sizes", "sentence"),
    [
        (["n", 3, "h"], {"height": 8}, r"nothing is called 'height'.*the inputs are x \['n', 3, 'h'\]"),
        (["n", 3, "h"], {}, "h is open.*--size h=N or --size x=1,3,N"),
        (["n", 3], {"x": (1, 4)}, r"is \['n', 3\], not \[1, 4\]"),
        (["n", 3], {"x": (1, 3, 1)}, "give a shape that fits"),
        (["n", 3], {"z": 4}, "nothing is called 'z'"),
        (["n", 3], {"n": 0}, "above 0"),
        ([1 << 20, 1 << 20], {}, "give smaller sizes"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(shape: list[int | str | None], sizes: dict[str, int], sentence: str) -> None:
    with pytest.raises(OpenNeutronError, match=sentence):
        resolve(made(shape), sizes, where="m")


def test_small_floats_are_widened_and_said() -> None:
    inputs, notes = resolve(made([1, 2], x=TensorProto.FLOAT16), {}, where="m")
    assert inputs[0].dtype == torch.float32 and "FLOAT16" in notes[0]


def test_text_is_refused() -> None:
    with pytest.raises(OpenNeutronError, match="input `x` holds STRING"):
        resolve(made([1], x=TensorProto.STRING), {}, where="m")
