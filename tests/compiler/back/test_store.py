"""Stored forms of whole models: the same results as plain ones, in fewer bytes."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.convert import convert
from openneutron.litert import DType, GraphBuilder
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.machine import targets
from openneutron.machine.simulator import Simulator
from openneutron.microcode.decode import decode
from openneutron.microcode.graph_op import Compiled, blocks_of
from openneutron.microcode.instructions import Program
from openneutron.microcode.table import Storage
from openneutron.options import Options
from tests import tiny

PLAIN = ("code_weights", "pack_code")


def compiled(target: str, *passes_off: str) -> Compiled:
    graph = read_model(convert(tiny.convnet(), Options(target=target, passes_off=passes_off)).model).main
    (op,) = graph.operators
    return blocks_of(graph, op, outputs=1)


def program_of(blocks: Compiled) -> Program:
    return decode(blocks.microcode, blocks.weights, blocks.kernels)


def output_of(blocks: Compiled) -> bytes:
    image = np.random.default_rng(1).integers(-128, 128, (1, 8, 8, 3)).astype(np.int8)
    with Simulator(blocks.microcode, blocks.weights, blocks.kernels, poison=True) as simulator:
        return simulator.run([image])[0].tobytes()


@pytest.mark.parametrize("target", ["imxrt700", "imx95"])
def test_a_stored_model_is_smaller_and_computes_the_same(target: str) -> None:
    coded, plain = compiled(target), compiled(target, *PLAIN)
    assert len(coded.weights) < len(plain.weights) and len(coded.microcode) < len(plain.microcode)
    assert output_of(coded) == output_of(plain)
    first, second = program_of(coded), program_of(plain)
    assert first.weights == second.weights and first.instructions == second.instructions


def linear(scale: float) -> bytes:
    """One linear layer on a vector, bound by its weights; the smaller their scale, the fewer bytes they are stored in."""
    rng = np.random.default_rng(5)
    g = GraphBuilder()
    x = g.tensor("x", (1, 256), DType.INT8, scale=0.05, zero_point=3)
    found = np.clip(np.rint(rng.laplace(0, scale, (64, 256))), -127, 127)
    w = g.tensor("w", (64, 256), DType.INT8, scale=0.01, data=found.astype(np.int8))
    b = g.tensor("b", (64,), DType.INT32, scale=0.0005, data=np.zeros(64, np.int32))
    y = g.tensor("y", (1, 64), DType.INT8, scale=0.5, zero_point=0)
    g.op("FULLY_CONNECTED", [x, w, b], [y])
    return write_model(g.finish([x], [y]))


def cycles_of(model: bytes, **options: object) -> tuple[int, int]:
    """As predicted and as simulated."""
    found = convert(model, Options(**options))  # type: ignore[arg-type]
    graph = read_model(found.model).main
    (op,) = graph.operators
    blocks = blocks_of(graph, op, outputs=1)
    with Simulator(blocks.microcode, blocks.weights, blocks.kernels) as simulator:
        simulator.run([np.zeros((1, 256), np.int8)])
        return found.report.totals.cycles, simulator.cycles


@pytest.mark.parametrize("fetch", [False, True])
@pytest.mark.parametrize("target", targets.chips())
def test_a_layer_waits_for_the_bytes_that_its_weights_are_stored_in(target: str, fetch: bool) -> None:
    given = {"target": target, "fetch_constants_to_sram": fetch}
    plain = cycles_of(linear(2.0), **given, passes_off=("code_weights",))
    wide, narrow = cycles_of(linear(8.0), **given), cycles_of(linear(2.0), **given)
    assert all(predicted == simulated for predicted, simulated in (plain, wide, narrow))
    assert narrow < wide < plain


def test_weights_that_take_next_to_nothing_load_at_the_decoders_pace() -> None:
    cost = targets.load("imxrt700").cost
    taken, _ = cycles_of(linear(0.0), target="imxrt700")
    plain, _ = cycles_of(linear(0.0), target="imxrt700", passes_off=("code_weights",))
    assert plain - taken == 64 * 256 * (cost.weight_byte - cost.decode_byte) // 1024


def test_each_form_can_be_left_out() -> None:
    program = program_of(compiled("imxrt700", "code_weights"))
    assert program.packed and not program.sections
    program = program_of(compiled("imxrt700", "pack_code"))
    assert not program.packed and any(section.storage is Storage.COLUMNS for section in program.sections)
