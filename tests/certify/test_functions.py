"""Tables are computed again from the function they name: a rotated one is refused, by the checker and by verify."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from openneutron.analyze.litert_layers import verify_litert
from openneutron.certify.functions import Unknown, evaluate, function_of, wrong_entries
from openneutron.certify.prove import prove
from openneutron.certify.refused import Refused
from openneutron.convert import convert
from openneutron.litert import DType, GraphBuilder
from openneutron.litert.table_composite import table_options
from openneutron.litert.write import write_model
from openneutron.options import Options

SIN = "v0=aten.sin.default(self=x)"


def model(roll: int = 0, text: str = SIN) -> bytes:
    g = GraphBuilder()
    x = g.tensor("x", (1, 16), DType.INT8, scale=0.05, zero_point=3)
    y = g.tensor("y", (1, 16), DType.INT8, scale=1 / 127, zero_point=0)
    real = np.sin(np.float32(0.05) * (np.arange(-128, 128) - 3).astype(np.float32))
    g.table(x, np.roll(np.round(real * 127).astype(np.int8), roll), y, text)
    return write_model(g.finish([x], [y]))


def test_a_good_table_passes_and_a_rotated_one_does_not() -> None:
    inputs = [np.arange(16, dtype=np.int8).reshape(1, 16)]
    assert prove(convert(model(), Options()).model, model()).graphs == 1
    assert verify_litert(model(), [inputs], Options()).equal
    with pytest.raises(Refused, match="is not that of its function"):
        prove(convert(model(7), Options()).model, model(7))
    found = verify_litert(model(7), [inputs], Options())
    assert not found.equal and found.first is not None and found.first.kernel == "table"


def test_an_unknown_function_is_the_sources_word() -> None:
    assert prove(convert(model(7, "v0=aten.bessel.default(self=x)"), Options()).model, model(7, "")).graphs == 1


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("v0=aten.exp.default(self=x)\nv1=aten.log1p.default(self=v0)", lambda x: math.log1p(math.exp(x))),
        ("v0=aten.mul.Tensor(self=x,other=x)\nv1=aten.add.Tensor(self=v0,other=2.0,alpha=3)", lambda x: x * x + 6),
        ("v0=aten.gt.Scalar(self=x,other=0.5)\nv1=aten.where.self(condition=v0,self=x,other=-1.0)",
         lambda x: x if x > 0.5 else -1.0),
        ("v0=aten.clamp.default(self=x,min=-0.5,max=None)", lambda x: max(x, -0.5)),
    ],
)  # fmt: skip
def test_functions_are_evaluated(text: str, function: Callable[[float], float]) -> None:
    for x in (-1.5, 0.0, 0.25, 3.0):
        assert evaluate(text, x, float) == pytest.approx(function(x))


def test_attributes_are_read_back() -> None:
    for text in (SIN, SIN * 50, SIN * 5000):
        assert function_of(table_options(1, text)["composite_attributes"].tobytes()) == text
    assert function_of(table_options(1)["composite_attributes"].tobytes()) == ""
    with pytest.raises(Unknown):
        wrong_entries("v0=aten.bessel.default(self=x)", (0.1, 0), (0.1, 0), bytes(256))
