"""What the open runtime runs of a file, and the sentence for what it does not."""

from __future__ import annotations

import pytest

import openneutron
from openneutron.errors import OptionError
from openneutron.litert import DType, GraphBuilder
from openneutron.litert.write import write_model
from openneutron.project.open_model import OpenModel, open_model
from tests import tiny


def with_real_ends() -> bytes:
    """QUANTIZE, a ReLU, DEQUANTIZE."""
    g = GraphBuilder()
    x, y = g.tensor("real", (1, 4), DType.FLOAT32), g.tensor("result", (1, 4), DType.FLOAT32)
    a, b = (g.tensor(name, (1, 4), DType.INT8, scale=0.1, zero_point=2) for name in ("a", "b"))
    g.op("QUANTIZE", [x], [a])
    g.op("RELU", [a], [b])
    g.op("DEQUANTIZE", [b], [y])
    return write_model(g.finish([x], [y]))


def test_names_come_from_the_model(small: OpenModel) -> None:
    assert (small.border.inputs, small.border.outputs, small.around) == (("image",), ("scores",), ())


def test_conversions_at_the_ends_are_left_out() -> None:
    model = open_model(openneutron.compile(with_real_ends(), target="cortex_m33").data, "ends")
    assert model.around == ("QUANTIZE", "DEQUANTIZE")
    assert (model.border.inputs, model.border.outputs) == (("a",), ("b",))


def test_work_outside_of_the_graph_is_refused_by_name() -> None:
    data = openneutron.compile(tiny.sandwich(), target="cortex_m33").data
    with pytest.raises(OptionError, match=r"sandwich: (it has 2 NeutronGraphs|SIN would stay outside)"):
        open_model(data, "sandwich")


def test_a_file_that_is_not_compiled_is_refused() -> None:
    with pytest.raises(OptionError, match="0 NeutronGraphs"):
        open_model(tiny.convnet(), "plain")
    with pytest.raises(OptionError, match=r"compiled .tflite or .pte"):
        open_model(b"something else", "other")
