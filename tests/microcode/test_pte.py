from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from openneutron.errors import FormatError
from openneutron.microcode.payload import payloads_of_pte
from openneutron.microcode.pte import PlanTensor, read_calls, read_plan
from tests.executorch.ordered import ordered


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(2, 4, 3, padding=1)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return ordered(ordered(self.conv(x)), 2), y + 1


def compiled(channels_last: bool) -> bytes:
    import openneutron as on

    torch.manual_seed(0)
    inputs = (torch.rand(1, 2, 6, 5), torch.rand(3))
    return on.compile(Net(), inputs, calibration=[inputs], channels_last=channels_last).pte


@pytest.fixture(scope="module")
def pte() -> bytes:
    return compiled(channels_last=False)


def test_instructions_have_their_tensors_and_where_they_lie(pte: bytes) -> None:
    plan, found = read_plan(pte, where="net.pte"), read_calls(pte, where="net.pte")
    kernels = [call.name for call in found.calls if call.delegate < 0]
    assert {name: kernels.count(name) for name in kernels} == plan.operators
    assert [call.name for call in found.calls if call.delegate >= 0] == ["NeutronBackend"]
    for ends, numbers in ((plan.inputs, found.inputs), (plan.outputs, found.outputs)):
        assert tuple(found.values[number].tensor for number in numbers) == ends
    used = {number for call in found.calls for number in call.values}
    assert used <= set(found.values)
    planned = [value for value in found.values.values() if value.offset >= 0]
    assert planned and all(value.offset < plan.planned_bytes and not value.constant for value in planned)


def test_inputs_outputs_and_calls_are_those_of_the_program(pte: bytes) -> None:
    plan = read_plan(pte, where="net.pte")
    assert plan.inputs == (
        PlanTensor("float32", (1, 2, 6, 5), (0, 1, 2, 3)),
        PlanTensor("float32", (3,), (0,)),
    )
    assert [one.shape for one in plan.outputs] == [(1, 4, 6, 5), (3,)]
    assert plan.operators["aten::topk.values"] == 2
    assert plan.delegates["NeutronBackend"] >= 1
    assert not plan.direct


def test_payloads_are_those_the_wheel_finds(pte: bytes) -> None:
    from openneutron.microcode.payload import parse_payload

    ours = [
        parse_payload(data, where="") for name, data in read_plan(pte, where="").payloads if name == "NeutronBackend"
    ]
    assert ours == payloads_of_pte(pte)


def test_channels_last_inputs_are_known_by_their_order() -> None:
    plan = read_plan(compiled(channels_last=True), where="net.pte")
    assert plan.inputs[0].channels_last and plan.inputs[0].dim_order == (0, 2, 3, 1)
    assert not plan.inputs[1].channels_last


def test_reading_needs_no_torch(pte: bytes, tmp_path: Path) -> None:
    (tmp_path / "net.pte").write_bytes(pte)
    code = f"""
import sys
from openneutron.microcode.pte import read_plan
read_plan(open({str(tmp_path / "net.pte")!r}, "rb").read(), where="net.pte")
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("data", [b"", b"hello world", b"\x1c\0\0\0TFL3" + bytes(99)], ids=["empty", "text", "tflite"])
def test_another_file_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match=r"a\.pte: not an ExecuTorch program"):
        read_plan(data, where="a.pte")


def test_no_damage_is_more_than_a_format_error(pte: bytes) -> None:
    rng = random.Random(0)
    refused = 0
    for _ in range(2000):
        data = bytearray(pte[: rng.choice((len(pte), rng.randrange(8, len(pte))))])
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            read_plan(bytes(data), where="net.pte")
        except FormatError:
            refused += 1
    assert refused > 100
