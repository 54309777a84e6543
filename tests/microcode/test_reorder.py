"""Reordering: the driver hands a payload's tensors over in the order of its arguments, with the same values."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import openneutron
from openneutron.cli.inputs.payloads import payload_of_file
from openneutron.compiler import kernels
from openneutron.machine.simulator import Simulator
from openneutron.microcode.decode import decode
from openneutron.microcode.payload import parse_payload
from openneutron.microcode.reorder import in_argument_order, is_sorted, reorder
from openneutron.run.runner import LiteRtRunner, random_inputs
from tests.several_ends import several_ends
from tests.streaming import streaming_convnet

kernels.rules()
ENDS = list(itertools.product([(0, 1), (1, 0)], itertools.permutations(("first", "sum", "flat"))))


@pytest.mark.parametrize(("inputs", "outputs"), ENDS, ids=[f"{a} {' '.join(b)}" for a, b in ENDS])
@pytest.mark.parametrize("target", ["mcxn94x", "imx95"])
def test_any_order_gives_the_models_outputs(inputs: tuple[int, ...], outputs: tuple[str, ...], target: str) -> None:
    source = several_ends(inputs, outputs)
    compiled = openneutron.compile(source, target=target).tflite
    where, data = payload_of_file(compiled, "m.tflite", None)
    payload = parse_payload(in_argument_order(data, where=where), where=where)
    assert is_sorted(payload)
    runner = LiteRtRunner(source)
    given = random_inputs(runner.inputs, seed=3)
    with Simulator(payload.microcode, payload.weights, payload.kernels, poison=True) as simulator:
        found = simulator.run(given)
    wanted = list(runner.run(given).outputs.values())
    assert [one.shape for one in found] == [one.shape for one in wanted]
    assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_what_is_sorted_keeps_its_bytes() -> None:
    where, data = payload_of_file(openneutron.compile(streaming_convnet()).tflite, "m.tflite", None)
    assert in_argument_order(data, where=where) is data


def test_two_exchanges_are_none() -> None:
    _, data = payload_of_file(openneutron.compile(several_ends()).tflite, "m.tflite", None)
    payload = parse_payload(data, where="m")
    program = decode(payload.microcode, payload.weights, payload.kernels)
    once = reorder(program, [1, 0], [2, 0, 1])
    assert once != program and [row.shape for row in once.tensors if not row.is_output] == [(1, 4, 4, 1), (1, 4, 4, 8)]
    assert reorder(once, [1, 0], [1, 2, 0]) == program
