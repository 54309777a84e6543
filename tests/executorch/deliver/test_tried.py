"""Partitions are lowered once: the partitioner's lowering is what is delivered, as long as nothing about it changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from openneutron.executorch.deliver import tried
from openneutron.executorch.lower.encoding import Constants
from openneutron.executorch.lower.lowering import Lowered, Lowering, Region
from openneutron.executorch.pipeline import Built, build
from openneutron.options import Options
from tests.executorch.partition.passes.test_keep_order_between import Gated
from tests.executorch.partition.test_states import Returned

Runs = Counter[frozenset[str]]
OPTIONS = Options(target="imxrt700")


class Three(nn.Module):
    """Three partitions around two operators that stay on the CPU; one layer, with its constants, is in two of them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.twice = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.floor(self.twice(torch.relu(self.first(x))))
        y = torch.floor(self.twice(y) + y)
        return y.mean((2, 3))


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    """How often the same nodes were lowered."""
    counted: Runs = Counter()
    run = Lowering.run

    def count(self: Lowering, region: Region) -> Lowered:
        counted[frozenset(node.name for node in region.nodes)] += 1
        return run(self, region)

    monkeypatch.setattr(Lowering, "run", count)
    return counted


def compiled(network: nn.Module, *shape: int, **options: Any) -> Built:
    torch.manual_seed(0)
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.3)
    x = (torch.rand(shape),)
    return build(network.eval(), x, calibration=[x], **options)


EXCLUDED = {"operators_not_to_delegate": ("aten.floor.default",)}
CASES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], dict[str, Any]]] = {
    "one cluster": (lambda: nn.Linear(8, 8), (1, 8), {}),
    "channels last": (
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(2)),
        (1, 3, 9, 9),
        {"channels_last": True},
    ),
    "weighed": (lambda: nn.Sequential(nn.Conv2d(8, 16, 3), nn.ReLU()), (1, 8, 16, 16), {"placement": "fastest"}),
}


@pytest.mark.parametrize("case", CASES)
def test_no_part_of_a_program_is_lowered_twice(case: str, runs: Runs) -> None:
    make, shape, options = CASES[case]
    assert len(compiled(make(), *shape, **options).partitions) == 1
    assert set(runs.values()) == {1}


SEVERAL: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], dict[str, Any], int]] = {
    "three": (Three, (1, 3, 9, 9), EXCLUDED, 3),
    "states": (Returned, (1, 4, 1), {}, 1),
}


@pytest.mark.parametrize("case", SEVERAL)
def test_the_program_is_that_of_lowering_each_partition_again(
    case: str, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, shape, options, partitions = SEVERAL[case]
    built = compiled(make(), *shape, **options)
    assert len(built.partitions) == partitions and set(runs.values()) == {1}
    monkeypatch.setattr(tried, "take", lambda *region: None)
    runs.clear()
    again = compiled(make(), *shape, **options)
    assert Counter(runs.values())[2] == partitions
    assert built.pte == again.pte


def test_neighbours_that_share_a_tensor_in_the_npus_order_are_lowered_once(runs: Runs) -> None:
    """The order is settled when both are lowered; ExecuTorch renames what the second one reads."""
    built = compiled(Gated(), 1, 3, 224, 224, target="mcxn94x")
    assert len(built.partitions) == 2 and set(runs.values()) == {1}
    assert not tried._tried


def quantized(weight: float) -> tuple[Region, Constants]:
    """A dequantized constant added to an input."""
    from torch.export import export

    class Add(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weight", torch.full((4,), weight))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.weight

    program = export(Add(), (torch.rand(4),))
    (add,) = [node for node in program.graph.nodes if node.op == "call_function"]
    inputs = [node for node in program.graph.nodes if node.name == "x"]
    return Region([add], inputs, [add]), Constants(program)


def lowered(region: Region) -> Lowered:
    return Lowered(None, list(region.nodes), [()], list(region.inputs), [*region.outputs], [0], [0])  # type: ignore[arg-type]


def test_the_same_content_is_found_once_in_the_nodes_of_who_asks() -> None:
    (there, of_there), (here, of_here) = quantized(0.5), quantized(0.5)
    tried.remember(there, of_there, OPTIONS, lowered(there))
    found = tried.take(here, of_here, Options(target="imxrt700", source="named", partition=4))
    assert found is not None
    assert [*found.nodes, *found.inputs, *found.outputs] == [*here.nodes, *here.inputs, *here.outputs]
    assert tried.take(here, of_here, OPTIONS) is None


def test_the_order_of_nodes_and_the_name_of_an_input_decide_nothing() -> None:
    def region(first: str, name: str) -> tuple[Region, Constants]:
        from torch.export import export

        class Two(nn.Module):
            def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
                return x.exp(), x.neg()

        program = export(Two(), (torch.rand(4),))
        by_name = {node.name: node for node in program.graph.nodes}
        by_name["x"].name = name
        nodes = sorted((by_name["exp"], by_name["neg"]), key=lambda node: node.name != first)
        return Region(nodes, [by_name["x"]], [by_name["exp"], by_name["neg"]]), Constants(program)

    there, of_there = region("exp", "x")
    tried.remember(there, of_there, OPTIONS, lowered(there))
    here, of_here = region("neg", "getitem")
    found = tried.take(here, of_here, OPTIONS)
    assert found is not None
    assert found.inputs == list(here.inputs) and [node.name for node in found.nodes] == ["exp", "neg"]


def test_a_copy_of_a_constant_for_each_reader_is_the_same_content() -> None:
    def region(second: float, *, copies: bool) -> tuple[Region, Constants]:
        from torch.export import export

        class Twice(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("one", torch.full((4,), 0.5))
                self.register_buffer("other", torch.full((4,), second))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return (x + self.one) + (self.other if copies else self.one)

        program = export(Twice(), (torch.rand(4),))
        nodes = [node for node in program.graph.nodes if node.op == "call_function"]
        inputs = [node for node in program.graph.nodes if node.name == "x"]
        return Region(nodes, inputs, nodes[-1:]), Constants(program)

    there, of_there = region(0.5, copies=False)
    tried.remember(there, of_there, OPTIONS, lowered(there))
    assert tried.take(*region(0.25, copies=True), OPTIONS) is None
    assert tried.take(*region(0.5, copies=True), OPTIONS) is not None


def _other_data() -> tuple[Region, Constants, Options]:
    return (*quantized(0.25), OPTIONS)


def _other_options() -> tuple[Region, Constants, Options]:
    return (*quantized(0.5), Options(target="imxrt700", use_neutron_for_format_conversion=True))


def _other_argument() -> tuple[Region, Constants, Options]:
    region, constants = quantized(0.5)
    region.nodes[0].kwargs = {"alpha": 2}
    return region, constants, OPTIONS


def _other_handle() -> tuple[Region, Constants, Options]:
    region, constants = quantized(0.5)
    region.nodes[0].meta["debug_handle"] = 77
    return region, constants, OPTIONS


def _other_order() -> tuple[Region, Constants, Options]:
    region, constants = quantized(0.5)
    region.inputs[0].meta["val"] = region.inputs[0].meta["val"].new_empty_strided((4,), (2,))
    return region, constants, OPTIONS


@pytest.mark.parametrize("other", [_other_data, _other_options, _other_argument, _other_handle, _other_order])
def test_other_content_is_not_found(other: Callable[[], tuple[Region, Constants, Options]]) -> None:
    region, constants = quantized(0.5)
    tried.remember(region, constants, OPTIONS, lowered(region))
    assert tried.take(*other()) is None
    assert tried.take(region, constants, OPTIONS) is not None


def test_without_the_data_nothing_is_kept() -> None:
    region, constants = quantized(0.5)
    constants._program.state_dict["weight"] = torch.empty(4, device="meta")
    tried.remember(region, constants, OPTIONS, lowered(region))
    assert not tried._tried
