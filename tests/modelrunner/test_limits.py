from __future__ import annotations

import numpy as np
import pytest

from openneutron.errors import OptionError, UnsupportedError
from openneutron.litert import DType, GraphBuilder
from openneutron.litert.write import write_model
from openneutron.microcode.pte import Plan, PlanTensor
from openneutron.modelrunner import limits
from openneutron.modelrunner.limits import board_of, check_model, check_program
from tests import tiny

FITS = Plan((PlanTensor("int8", (1, 8), (0, 1)),), (PlanTensor("int8", (1, 4), (0, 1)),), {}, {}, (), 1_000)
TOO_MUCH = {
    "inputs": (Plan((FITS.inputs[0],) * 2, FITS.outputs, {}, {}, ()), "2 inputs"),
    "planned memory": (Plan(FITS.inputs, FITS.outputs, {}, {}, (), 1_245_185), "planned memory is 1,245,185 bytes"),
    "input": (Plan((PlanTensor("float32", (1, 65_537), (0, 1)),), FITS.outputs, {}, {}, ()), "its input has 262,148 bytes"),
    "outputs": (Plan(FITS.inputs, (PlanTensor("int8", (266_240,), (0,)),), {}, {}, ()), "an answer of 266,259 bytes"),
    "operators": (
        Plan(FITS.inputs, FITS.outputs, {"aten::bmm.out": 1, "aten::add.out": 2}, {}, ()),
        "leaves aten::bmm.out on the CPU",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("plan", "message"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_a_program_that_the_runner_cannot_take(monkeypatch: pytest.MonkeyPatch, plan: Plan, message: str) -> None:
    monkeypatch.setattr(limits, "read_plan", lambda data, where: plan)
    with pytest.raises(UnsupportedError) as error:
        check_program(b"pte", "model.pte")
    assert message in str(error.value) and str(error.value).startswith(
        "model.pte: executorch_modelrunner cannot run it"
    )


def test_a_program_within_all_limits_passes_and_a_large_file_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "read_plan", lambda data, where: FITS)
    check_program(bytes(393_216), "model.pte")
    check_program(b"pte", "model.pte", "mimxrt700evk")
    with pytest.raises(UnsupportedError, match="published for imxrt700 only, and frdmmcxn947 has mcxn94x"):
        check_program(b"pte", "model.pte", "frdmmcxn947")
    with pytest.raises(UnsupportedError, match="393,217 bytes, and its buffer 393,216"):
        check_program(bytes(393_217), "model.pte")


def test_a_model_is_held_against_its_board() -> None:
    check_model(tiny.convnet(), "model.tflite")
    check_model(tiny.convnet(), "model.tflite", "FRDM-MCXN947")
    with pytest.raises(UnsupportedError, match="frdmmcxn947 takes 1,048,576"):
        check_model(tiny.convnet() + bytes(1 << 20), "model.tflite", "frdmmcxn947")
    with pytest.raises(OptionError, match="unknown board 'arduino'"):
        board_of("arduino")


def test_arrays_that_the_firmware_would_overflow_are_counted() -> None:
    g = GraphBuilder()
    ends = [g.tensor(f"x{at}", (1, 4), DType.INT8, scale=1.0, zero_point=0) for at in range(17)]
    y = g.tensor("y", (1, 4), DType.INT8, scale=1.0, zero_point=0)
    g.op("ADD", ends[:2], [y])
    with pytest.raises(UnsupportedError, match="17 inputs, and tflm_modelrunner has room for 16"):
        check_model(write_model(g.finish(ends, [y])), "many.tflite")


def test_the_registered_operators_are_as_many_as_published_less_those_that_never_match() -> None:
    assert len(limits.REGISTERED) == 43 - 4
    assert np.prod([limits.board_of(name).window_bytes >= limits.board_of(name).ram_bytes for name in limits.BOARDS])
