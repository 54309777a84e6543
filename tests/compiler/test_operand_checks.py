from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openneutron.compiler import kernels
from openneutron.compiler.operand_checks import ARITIES, check_operands
from openneutron.compiler.signature import OpSignature, of_operator
from openneutron.litert.graph import Quantization
from openneutron.litert.read import read_model
from openneutron.machine import targets
from tests.compiler.networks import Network

TARGET = targets.load("imxrt700")


def _add() -> OpSignature:
    net = Network(np.random.default_rng(0), (1, 4, 4, 2))
    graph = read_model(net.finish(net.add(net.input, net.input))).main
    return of_operator(graph, graph.operators[0])


def _code(op: OpSignature) -> str:
    reason = kernels.check(op, TARGET).reason
    return reason.code if reason else ""


def test_every_operator_with_a_kernel_has_an_arity() -> None:
    assert set(kernels.rules()) == set(ARITIES)


def test_inputs_and_outputs_are_counted() -> None:
    op = _add()
    assert _code(op) == ""
    assert _code(replace(op, inputs=op.inputs[:1])) == "wrong_arity"
    assert _code(replace(op, inputs=(*op.inputs, op.inputs[0]))) == "wrong_arity"
    assert _code(replace(op, inputs=(op.inputs[0], None))) == "wrong_arity"
    assert _code(replace(op, outputs=())) == "wrong_arity"
    assert _code(replace(op, outputs=op.outputs * 2)) == "wrong_arity"
    reason = check_operands(replace(op, inputs=()), TARGET)
    assert reason is not None and reason.message == "0 inputs are given, ADD takes 2"


@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf"), float("nan"), 1e-40])
def test_odd_scales_are_refused(scale: float) -> None:
    op = _add()
    odd = op.outputs[0]._replace(quantization=Quantization((scale,), (0,)))
    assert _code(replace(op, outputs=(odd,))) == "odd_scale"


def test_tensors_larger_than_the_memory_are_refused() -> None:
    op = _add()
    huge = op.outputs[0]._replace(shape=(1, 1 << 12, 1 << 12, 2))
    assert _code(replace(op, outputs=(huge,))) == "too_large"
