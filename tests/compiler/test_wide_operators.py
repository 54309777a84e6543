"""Every operator that docs/int16.md calls ours is 16 bits wide in compiled code, on every chip, and LiteRT's to the bit."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from openneutron.compiler.kernels import rules
from openneutron.convert import convert
from openneutron.litert.graph import DType
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.machine import targets
from openneutron.microcode.decode import decode
from openneutron.microcode.graph_op import blocks_of
from openneutron.microcode.instructions import ABSENT, Program
from openneutron.microcode.table import ElementType
from openneutron.microcode.walk import executed_calls, output_of
from openneutron.options import Options
from tests.golden import ModelMaker, refusal
from tests.wide_models import MODELS, NARROW

# Types are part of what these do: 16-bit state beside INT8 activations, resources, tables of 8 bits.
OF_THEIR_OWN = {
    "ASSIGN_VARIABLE", "READ_VARIABLE", "STABLEHLO_COMPOSITE", "SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM", "VAR_HANDLE",
}  # fmt: skip
ALONE = {"minimum_operators_per_graph": 0}


def _maker(code: str) -> ModelMaker:
    maker = ModelMaker(np.random.default_rng(zlib.crc32(code.encode())))
    {**MODELS, **NARROW}[code](maker)
    return maker


def _program(model: bytes, target: str) -> Program:
    graph = read_model(convert(model, Options(target=target, **ALONE)).model).main
    (op,) = graph.operators
    compiled = blocks_of(graph, op, outputs=len(op.outputs))
    return decode(compiled.microcode, compiled.weights, compiled.kernels)


@pytest.mark.parametrize("code", MODELS)
def test_an_operator_of_the_page_is_wide_and_exact(code: str) -> None:
    maker = _maker(code)
    model = write_model(maker.model())
    assert {op.code for op in read_model(model).main.operators} == {code}
    for target in targets.geometries():
        maker.check(target, **ALONE)
        program = _program(model, target)
        assert {row.dtype for row in program.tensors} == {ElementType.INT16}
        for call, _, _ in executed_calls(program):
            types = {one.dtype for one in call.operands if one != ABSENT}
            assert output_of(call).dtype in (ElementType.INT16, ElementType.INT32)  # of sums
            assert ElementType.INT16 in types and ElementType.INT8 not in types, "its values are narrowed on the way"


@pytest.mark.parametrize("code", NARROW)
def test_an_operator_that_is_not_there_refuses_16_bits(code: str) -> None:
    said = refusal(_maker(code).model())
    assert "INT16" in said or "INT8" in said, said


def test_every_operator_with_a_kernel_is_one_or_the_other() -> None:
    assert set(rules()) - OF_THEIR_OWN == set(MODELS) | set(NARROW)
    assert not set(MODELS) & set(NARROW)


def test_models_of_another_type_would_be_seen() -> None:
    maker = ModelMaker(np.random.default_rng(0))
    maker.op("RELU", [maker.input((1, 4), DType.INT8, 0.5, 0)], maker.output((1, 4), DType.INT8, 0.5, 0))
    assert {row.dtype for row in _program(write_model(maker.model()), "imxrt700").tensors} == {ElementType.INT8}
