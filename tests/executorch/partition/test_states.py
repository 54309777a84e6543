"""Buffers that `forward` changes stay with the NPU, quantized, from call to call."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from openneutron.executorch.pipeline import Built, build
from openneutron.executorch.run.runtime import load_program
from openneutron.litert.read import read_model

FRAMES = [torch.randn(1, 4, 1, generator=torch.Generator().manual_seed(seed)) for seed in range(8)]


class Spotter(nn.Module):
    """A convolution over the last three frames, and a cell: two states of different kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.cell, self.head = nn.Conv1d(4, 6, 3), nn.GRUCell(6, 5), nn.Linear(5, 2)
        self.register_buffer("past", torch.zeros(1, 4, 2))
        self.register_buffer("hidden", torch.full((1, 5), 0.25))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        window = torch.cat([self.past, x], 2)
        self.past.copy_(window[:, :, 1:])
        hidden = self.cell(torch.relu(self.conv(window)).squeeze(2), self.hidden)
        self.hidden.copy_(hidden)
        return self.head(hidden)


class Layered(nn.Module):
    """A whole layer whose state outlives the call."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.GRU(4, 5, batch_first=True)
        self.register_buffer("state", torch.zeros(1, 1, 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, state = self.layer(x.transpose(1, 2), self.state)
        self.state.copy_(state)
        return y


class Returned(nn.Module):
    """What is kept is returned as well."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(4, 4, 1)
        self.register_buffer("past", torch.ones(1, 4, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(self.conv(x) + self.past)
        self.past.copy_(y)
        return y


def built(make: Callable[[], nn.Module], exclude: tuple[str, ...] = ()) -> tuple[nn.Module, Built]:
    torch.manual_seed(0)
    model = make().eval()
    return model, build(model, (FRAMES[0],), calibration=[(frame,) for frame in FRAMES], exclude=exclude)


def codes(made: Built) -> list[str]:
    return [op.code for partition in made.partitions for op in read_model(partition.litert).main.operators]


def test_states_stay_quantized_with_the_npu_and_begin_as_they_were() -> None:
    model, made = built(Spotter)
    assert torch.equal(model.hidden, torch.full((1, 5), 0.25)), "calibrating left the caller's state alone"
    assert codes(made).count("ASSIGN_VARIABLE") == 2 and codes(made).count("TRANSPOSE") == 0
    left = [node.operator for node in made.report.nodes if not node.delegated]
    assert len(left) == 2, "the CPU quantizes the frame and dequantizes the answer, nothing else"
    one, two = load_program(made.pte), load_program(made.pte)
    wanted = [made.quantized(frame) for frame in FRAMES]
    assert all(torch.equal(one.run(frame)[0], want) for frame, want in zip(FRAMES, wanted, strict=True))
    assert torch.equal(two.run(FRAMES[0])[0], wanted[0]), "two programs have two states"
    one.reset()
    assert torch.equal(one.run(FRAMES[0])[0], wanted[0])


@pytest.mark.parametrize(
    ("make", "exclude", "kept"),
    [(Layered, (), 1), (Returned, (), 1), (Returned, ("aten.tanh.default",), 0)],
    ids=["a layer", "returned too", "written by the CPU"],
)
def test_every_frame_sees_the_ones_before(make: Callable[[], nn.Module], exclude: tuple[str, ...], kept: int) -> None:
    _, made = built(make, exclude)
    assert codes(made).count("ASSIGN_VARIABLE") == kept
    program = load_program(made.pte)
    with torch.no_grad():
        for frame in FRAMES:
            torch.testing.assert_close(program.run(frame)[0], made.quantized(frame), rtol=0, atol=1e-6)
