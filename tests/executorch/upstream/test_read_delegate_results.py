"""What a delegate's graph says of its results is what writing a program goes by."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from executorch.exir._serialize._program import deserialize_pte_binary
from executorch.exir.delegate import executorch_call_delegate
from torch._higher_order_ops.utils import registered_hop_fake_fns
from torch.export import ExportedProgram

from openneutron.executorch import pipeline
from openneutron.executorch.upstream.read_delegate_results import read_delegate_results
from tests.executorch.partition.passes.test_keep_order_between import Gated

IMAGE = torch.zeros(1, 2, 3, 4)


class _Two(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.relu(), x.mean(1)


class _Itself(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x, x.relu()


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was run instead of known."""
    ran: list[Any] = []

    def run(delegate: Any, *args: Any) -> Any:
        ran.append(args)
        return delegate.original_module.module()(*args)

    monkeypatch.setitem(registered_hop_fake_fns, executorch_call_delegate, run)
    return ran


def _program(module: torch.nn.Module) -> ExportedProgram:
    return torch.export.export(module, (IMAGE,))


def _called(program: ExportedProgram, *calls: torch.Tensor) -> list[tuple[torch.Tensor, ...]]:
    delegate = SimpleNamespace(original_module=program)
    with read_delegate_results():
        return [registered_hop_fake_fns[executorch_call_delegate](delegate, x) for x in calls]


def _alike(a: tuple[torch.Tensor, ...], b: tuple[torch.Tensor, ...]) -> bool:
    return all((x.shape, x.stride(), x.dtype) == (y.shape, y.stride(), y.dtype) for x, y in itertools.zip_longest(a, b))


def test_results_are_those_of_the_graph_and_nothing_runs(runs: list[Any]) -> None:
    (found,) = _called(_program(_Two()), IMAGE)
    assert not runs and _alike(found, _Two()(IMAGE))


def test_what_is_given_in_another_order_runs_once(runs: list[Any]) -> None:
    last = IMAGE.contiguous(memory_format=torch.channels_last)
    first, second = _called(_program(_Two()), last, last)
    assert len(runs) == 1 and _alike(first, _Two()(last)) and _alike(second, first)


def test_what_returns_its_input_runs_each_time(runs: list[Any]) -> None:
    first, _ = _called(_program(_Itself()), IMAGE, IMAGE)
    assert len(runs) == 2 and first[0] is IMAGE


def test_torch_is_itself_again() -> None:
    before = registered_hop_fake_fns[executorch_call_delegate]
    with read_delegate_results():
        assert registered_hop_fake_fns[executorch_call_delegate] is not before
    assert registered_hop_fake_fns[executorch_call_delegate] is before


def test_a_program_says_that_what_crosses_from_graph_to_graph_is_channels_last() -> None:
    torch.manual_seed(0)
    image = (torch.rand(1, 3, 224, 224),)
    built = pipeline.build(Gated(), image, calibration=[image], target="mcxn94x")
    program: Any = deserialize_pte_binary(built.pte)
    values = [value.val for value in getattr(program, "program", program).execution_plan[0].values]
    orders = {tuple(one.sizes): tuple(one.dim_order) for one in values if type(one).__name__ == "Tensor"}
    assert len(built.partitions) == 2
    assert orders[1, 3, 224, 224] == (0, 1, 2, 3)
    assert orders[1, 16, 56, 56] == (0, 2, 3, 1)
