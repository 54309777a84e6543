"""A float LiteRT model below its goal gets 16-bit activations in the operators that lose most, within the cycles."""

from __future__ import annotations

import numpy as np

import openneutron as on
from openneutron.convert import convert
from openneutron.litert import DType, write_model
from openneutron.litert.build import GraphBuilder
from openneutron.options import Options
from openneutron.quantize_litert.improve import _costs
from openneutron.quantize_litert.quantize import FloatQuantizer

WIDTH = 64
RANDOM = np.random.default_rng(5)
ROWS = RANDOM.standard_normal((8, WIDTH)).astype(np.float32)


def mixed() -> bytes:
    """A layer, then one value a thousand times the others, which the next operator makes small again, then a layer."""
    g = GraphBuilder()
    wide = np.ones(WIDTH, np.float32)
    wide[0] = 1000.0
    x = last = g.tensor("x", (1, WIDTH), DType.FLOAT32)
    for at, name in enumerate(("first", "second", "stretched", "shrunk", "third", "fourth")):
        made = g.tensor(name, (1, WIDTH), DType.FLOAT32)
        if name in ("stretched", "shrunk"):
            factor = g.tensor(f"by{at}", (WIDTH,), DType.FLOAT32, data=wide if name == "stretched" else 1 / wide)
            g.op("MUL", [last, factor], [made], fused_activation_function="NONE")
        else:
            values = RANDOM.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 8
            g.op("FULLY_CONNECTED", [last, g.tensor(f"w{at}", values.shape, DType.FLOAT32, data=values), -1], [made])
        last = made
    return write_model(g.finish([x], [last]))


def test_the_operators_that_lose_most_get_16_bits_and_three_lines_say_so() -> None:
    data = mixed()
    plain = on.compile(data, calibration=ROWS, quality="plain")
    program = on.compile(data, calibration=ROWS, quality_cycles=2.0)
    assert (plain.report.output_sqnr or 0) < 20 < 25 < (program.report.output_sqnr or 0)
    done, cost, gain = [note for note in program.report.notes if note.startswith("quality: ")]
    assert "16-bit activations in" in done and "stretched" in done and "× the cycles" in cost and "gains" in gain
    assert program.report.totals.cycles <= 2 * plain.report.totals.cycles
    assert program.report.seconds["looking for better choices"] > 0
    assert on.compile(data, calibration=ROWS, quality_cycles=2.0).data == program.data


def test_an_operator_written_out_in_several_has_their_cycles() -> None:
    """A sloped activation has no 16-bit form: four operators do it, and cost what they take together."""
    g = GraphBuilder()
    x, y, z = (g.tensor(name, (1, 8, 8, 16), DType.FLOAT32) for name in "xyz")
    slopes = g.tensor("slopes", (1, 1, 16), DType.FLOAT32, data=np.linspace(0.1, 0.4, 16, dtype=np.float32))
    g.op("RELU", [x], [y])
    g.op("PRELU", [y, slopes], [z])
    rows = np.random.default_rng(1).standard_normal((8, 8, 8, 16)).astype(np.float32)
    with FloatQuantizer(write_model(g.finish([x], [z])), rows) as quantizer:
        narrow, wide = (
            convert(quantizer.quantize(wide=names, compare=False).model, Options(target="imxrt700")).report
            for names in ((), ("y", "z"))
        )
    costs = _costs(narrow, wide, narrow.totals.cycles)
    assert set(costs) >= {"y", "z"} and costs["z"] > 2 * costs["y"] > 0
