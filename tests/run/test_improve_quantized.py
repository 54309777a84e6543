"""A float LiteRT model below its goal gets 16-bit activations in the operators that lose most, within the cycles."""

from __future__ import annotations

import numpy as np

import openneutron as on
from openneutron.litert import DType, write_model
from openneutron.litert.build import GraphBuilder
from openneutron.run.improve_quantized import choose_groups

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


def test_groups_that_remove_most_for_their_cycles_come_first() -> None:
    noise = [[0.5, 0.0], [0.4, 0.1], [0.01, 0.4]]
    assert choose_groups(noise, [0.0, 0.0], [0.3, 0.1, 0.1], target=0.2, most=1.0) == [1, 2, 0]
    assert choose_groups(noise, [0.0, 0.0], [0.3, 0.1, 0.1], target=0.2, most=0.1) == [1]
    assert choose_groups(noise, [0.0, 0.0], [0.3, 0.1, 0.1], target=2.0, most=1.0) == []
