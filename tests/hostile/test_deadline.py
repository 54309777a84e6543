"""Small files that ask for hours of work end when their time is over, with a sentence."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from openneutron.compiler.kernels.batch_matmul import BatchMatmulParams
from openneutron.compiler.kernels.copy import CopyParams
from openneutron.compiler.kernels.fully_connected import FullyConnectedParams
from openneutron.compiler.kernels.max_pool2d import MaxPool2dParams
from openneutron.errors import RuntimeFailure
from openneutron.executorch.run.runtime import LoadedProgram
from openneutron.machine import driver
from openneutron.machine.simulator import Simulator
from openneutron.microcode import abi
from openneutron.microcode.graph_op import Compiled
from openneutron.microcode.instructions import ABSENT, Call, Loop
from openneutron.microcode.table import Region
from tests.executorch.delegates import payload_of, program_of
from tests.hostile import crafted
from tests.hostile.crafted import operand

CODES = {name: word for word, name, _ in driver.errors()}


def kernel(name: str) -> abi.KernelAbi:
    return next(k for k in abi.all_kernels() if k.name == name)


def params(kind: type, **given: object) -> object:
    """The kernel's parameters, zero where nothing is given."""
    fields = dict.fromkeys(kind.__dataclass_fields__, 0)
    return kind(**{**fields, **given})


def matrix_product() -> Call:
    """One row of 2^36 multiplications."""
    k = kernel("batch_matmul")
    left, right = operand(Region.INPUT, 1, 1, 2**15, 2**15), operand(Region.INPUT, 1, 1, 2**15, 2**6)
    given = params(BatchMatmulParams, inner=1, left_inner=1, right_inner=1, clamp_low=-128, clamp_high=127)
    return crafted.call(k.id, k.abi, (left, right, ABSENT, operand(Region.OUTPUT, 1, 1, 2**15, 2**6)), 1, given)


def many_products() -> Loop:
    """2^40 multiplications in 64 calls, over 256 weights."""
    k = kernel("fully_connected")
    image = (1, 2**11, 2**15, 16)
    flat = operand(Region.WEIGHTS, 1, 1, 1, 1024)
    given = params(FullyConnectedParams, clamp_low=-128, clamp_high=127)
    operands = (operand(Region.INPUT, *image), flat, flat, ABSENT, operand(Region.OUTPUT, *image))
    return Loop(64, (crafted.call(k.id, k.abi, operands, 2**11, given),))


def many_bytes() -> Loop:
    """2^40 bytes copied one by one: a kernel that does its whole output at once."""
    k = kernel("copy")
    image = (1, 1, 2**15, 2**15)
    rank = CopyParams.__dataclass_fields__["dims"].metadata["size"]
    shape = {"dims": (*([1] * (rank - 2)), 2**15, 2**15), "input_strides": (0,) * rank, "output_strides": (0,) * rank}
    operands = (operand(Region.INPUT, *image), operand(Region.OUTPUT, *image))
    return Loop(2**10, (crafted.call(k.id, k.abi, operands, 1, params(CopyParams, **shape)),))


def large_windows() -> Call:
    """One row of 2^35 comparisons: a window of up to 2^24 pixels for each of 2^11."""
    k = kernel("max_pool2d")
    window = {"kernel_h": 2**12, "kernel_w": 2**12, "stride_h": 1, "stride_w": 1}
    given = params(MaxPool2dParams, **window, pad_left=2**10, clamp_low=-128, clamp_high=127)
    image, row = operand(Region.INPUT, 1, 2**12, 2**12, 1), operand(Region.OUTPUT, 1, 1, 2**11, 1)
    return crafted.call(k.id, k.abi, (image, ABSENT, row), 1, given)


HOSTILE = {
    "windows": lambda: crafted.blocks(large_windows()),
    "one row of a matrix product": lambda: crafted.blocks(
        matrix_product(), input_bytes=2**15, output_bytes=2**15, kernels=(8,)
    ),
    "fully connected": lambda: crafted.blocks(many_products(), weights=bytes(1024)),
    "copy": lambda: crafted.blocks(many_bytes(), input_bytes=2**15, output_bytes=2**15),
}


@pytest.mark.parametrize("isa", ["", "portable"])
@pytest.mark.parametrize("name", HOSTILE)
def test_simulator(name: str, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks: Compiled = HOSTILE[name]()
    assert len(blocks.microcode) + len(blocks.weights) < 4096
    library = driver.library()
    assert library.neutronSetIsa(isa.encode() or None)
    try:
        with (
            Simulator(blocks.microcode, blocks.weights, blocks.kernels, timeout_seconds=1) as simulator,
            pytest.raises(RuntimeFailure, match="took too long") as refused,
        ):
            simulator.run([np.zeros(t.shape, np.int8) for t in simulator.inputs])
        assert refused.value.code == CODES["TIMEOUT"]
    finally:
        library.neutronSetIsa(None)


def test_default_is_finite_and_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = HOSTILE["fully connected"]()
    monkeypatch.setenv("OPENNEUTRON_TIMEOUT", "1")
    with (
        Simulator(blocks.microcode, blocks.weights, blocks.kernels) as simulator,
        pytest.raises(RuntimeFailure, match="OPENNEUTRON_TIMEOUT"),
    ):
        simulator.run([np.zeros(crafted.INPUT_BYTES, np.int8)])


@pytest.mark.parametrize("text", ["soon", "-1", "1.5", "99999999999"])
def test_setting_that_is_no_number(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = HOSTILE["fully connected"]()
    monkeypatch.setenv("OPENNEUTRON_TIMEOUT", text)
    with pytest.raises(RuntimeFailure, match="not a number of seconds"):
        Simulator(blocks.microcode, blocks.weights, blocks.kernels)


def test_delegate(monkeypatch: pytest.MonkeyPatch) -> None:
    payload = payload_of(HOSTILE["fully connected"](), [0], [0])
    monkeypatch.setenv("OPENNEUTRON_TIMEOUT", "1")
    x = torch.zeros(crafted.INPUT_BYTES, dtype=torch.int8)
    program = LoadedProgram(program_of([payload], [x], [[x]]), where="crafted.pte", etdump=False)
    with pytest.raises(RuntimeFailure, match="took too long"):
        program.run(x)
