"""Partitions are lowered and converted once: the partitioner's trial is delivered, as long as the subgraph is the same."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.backend.compile_spec_schema import CompileSpec
from torch import nn
from torch.export import ExportedProgram

from openneutron.convert import convert, convert_alone
from openneutron.executorch import NeutronPartitioner, generate_neutron_compile_spec
from openneutron.executorch.deliver import backend
from openneutron.executorch.deliver.session import CompileSession, Content, Trial, take_trial
from openneutron.executorch.lower.encoding import Constants
from openneutron.executorch.lower.lowering import Lowered, Lowering, Region
from openneutron.executorch.partition import trial_conversion
from openneutron.executorch.pipeline import Built, build, quantize
from openneutron.options import Options
from openneutron.result import Result
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
    monkeypatch.setattr(backend, "take_trial", lambda specs: None)  # as where only the specs arrive
    runs.clear()
    again = compiled(make(), *shape, **options)
    assert Counter(runs.values())[2] == partitions
    assert built.pte == again.pte


def test_neighbours_that_share_a_tensor_in_the_npus_order_are_lowered_once(runs: Runs) -> None:
    """The order is settled when both are lowered; ExecuTorch renames what the second one reads."""
    built = compiled(Gated(), 1, 3, 224, 224, target="mcxn94x")
    assert len(built.partitions) == 2 and set(runs.values()) == {1}


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


def trial(region: Region, constants: Constants) -> Trial:
    return Trial(Content.of(region, constants), OPTIONS, lowered(region))


def test_a_trial_is_delivered_once_in_the_nodes_of_the_subgraph() -> None:
    (there, of_there), (here, of_here) = quantized(0.5), quantized(0.5)
    specs = CompileSession().add(3, trial(there, of_there))
    found = take_trial(specs)
    assert found is not None and take_trial(specs) is None
    delivered = found.in_nodes_of(here, of_here)
    assert delivered is not None
    assert [*delivered.nodes, *delivered.inputs, *delivered.outputs] == [*here.nodes, *here.inputs, *here.outputs]


def test_a_program_that_is_taken_apart_has_its_trial_still() -> None:
    """ExecuTorch erases the nodes of a partition once they are in a subgraph."""
    (there, of_there), (here, of_here) = quantized(0.5), quantized(0.5)
    kept = trial(there, of_there)
    graph = there.nodes[0].graph
    graph.output_node().args = ((),)
    graph.erase_node(there.nodes[0])
    assert kept.in_nodes_of(here, of_here) is not None


def test_specs_say_the_number_and_only_their_copies_know_the_session() -> None:
    specs = CompileSession().add(3, trial(*quantized(0.5)))
    assert [one for one in specs if one.key == "partition"] == [CompileSpec("partition", b"3")]
    assert {type(one) for one in specs} == {CompileSpec}
    pickled = pickle.loads(pickle.dumps(specs))
    assert type(pickled) is list and pickled == specs and take_trial(pickled) is None
    assert take_trial(copy.deepcopy(specs)) is not None


def test_sessions_know_nothing_of_each_other() -> None:
    first, second = CompileSession(), CompileSession()
    specs = [one.add(0, trial(*quantized(value))) for one, value in ((first, 0.5), (second, 0.25))]
    for found, value in zip(map(take_trial, specs), (0.5, 0.25), strict=True):
        assert found is not None and found.in_nodes_of(*quantized(value)) is not None


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
    here, of_here = region("neg", "getitem")
    found = trial(there, of_there).in_nodes_of(here, of_here)
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
    kept = trial(there, of_there)
    assert kept.in_nodes_of(*region(0.25, copies=True)) is None
    assert kept.in_nodes_of(*region(0.5, copies=True)) is not None


def _other_data() -> tuple[Region, Constants]:
    return quantized(0.25)


def _no_data() -> tuple[Region, Constants]:
    region, constants = quantized(0.5)
    constants._program.state_dict["weight"] = torch.empty(4, device="meta")
    return region, constants


def _other_operator() -> tuple[Region, Constants]:
    region, constants = quantized(0.5)
    region.nodes[0].target = torch.ops.aten.sub.Tensor
    return region, constants


def _other_handle() -> tuple[Region, Constants]:
    region, constants = quantized(0.5)
    region.nodes[0].meta["debug_handle"] = 77
    return region, constants


@pytest.mark.parametrize("other", [_other_data, _no_data, _other_operator, _other_handle])
def test_other_content_is_lowered_anew(other: Callable[[], tuple[Region, Constants]]) -> None:
    assert trial(*quantized(0.5)).in_nodes_of(*other()) is None
    assert trial(*other()).in_nodes_of(*quantized(0.5)) is None


def payloads(program: ExportedProgram) -> list[bytes]:
    modules = program.graph_module.children()
    return [module.processed_bytes for module in modules if hasattr(module, "processed_bytes")]


def test_two_methods_with_one_name_for_different_data(runs: Runs) -> None:
    """While partitioning, ExecuTorch hands out programs without data: which method a program is cannot be told."""
    torch.manual_seed(0)
    x = (torch.linspace(-1, 1, 8).reshape(1, 8),)
    layers = [nn.Linear(8, 8).eval() for _ in range(2)]
    programs = {f"method_{at}": quantize(layer, x, [x]).program for at, layer in enumerate(layers)}
    edge = to_edge_transform_and_lower(
        programs, partitioner=[NeutronPartitioner(generate_neutron_compile_spec("imxrt700"))]
    )
    for name, program in programs.items():
        alone = to_edge_transform_and_lower(
            {name: program}, partitioner=[NeutronPartitioner(generate_neutron_compile_spec("imxrt700"))]
        )
        assert payloads(edge.exported_program(name)) == payloads(alone.exported_program(name))
    assert payloads(edge.exported_program("method_0")) != payloads(edge.exported_program("method_1"))


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch) -> list[Options]:
    """The options of every conversion that is made."""
    made: list[Options] = []

    def counted(model: bytes, options: Options) -> Result:
        made.append(options)
        return convert_alone(model, options)

    for module in (backend, trial_conversion):
        monkeypatch.setattr(module, "convert_alone", counted)
    return made


def test_what_was_weighed_is_delivered(conversions: list[Options]) -> None:
    network = nn.Sequential(nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3))
    built = compiled(network, 1, 8, 16, 16, placement="fastest")
    assert len(built.partitions) == 1 and len(conversions) == 1
    fresh = convert(built.partitions[0].litert, replace(conversions[0], source="partition 0"))
    assert fresh.report.totals == built.partitions[0].report.totals, "with an interval"
    assert fresh.report.stock == built.partitions[0].report.stock


def test_a_partition_that_fits_only_as_a_cascade_is_compiled_once(conversions: list[Options]) -> None:
    network = nn.Sequential(nn.Conv2d(3, 60, 3, padding=1), nn.ReLU(), nn.Conv2d(60, 2, 3, padding=1))
    built = compiled(network, 1, 3, 100, 100, target="mcxn94x")
    assert len(built.partitions) == 1 and len(conversions) == 1
    fresh = convert(built.partitions[0].litert, replace(conversions[0], one_graph=True))
    assert fresh.model == built.partitions[0].converted
