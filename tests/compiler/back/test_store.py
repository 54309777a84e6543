"""Stored forms of whole models: the same results as plain ones, in fewer bytes."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.convert import convert
from openneutron.litert.read import read_model
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


def test_each_form_can_be_left_out() -> None:
    program = program_of(compiled("imxrt700", "code_weights"))
    assert program.packed and not program.sections
    program = program_of(compiled("imxrt700", "pack_code"))
    assert not program.packed and any(section.storage is Storage.COLUMNS for section in program.sections)
