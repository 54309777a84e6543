from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from executorch.exir import to_edge, to_edge_transform_and_lower
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from openneutron.errors import OptionError
from openneutron.executorch import (
    CustomDelegationOptions,
    NeutronPartitioner,
    NeutronQuantizer,
    NeutronTargetSpec,
    generate_neutron_compile_spec,
)
from openneutron.executorch.delivery import partitions_of
from openneutron.executorch.partition.clusters import find_clusters
from openneutron.executorch.partition.levels import cut
from openneutron.executorch.pipeline import build, quantize
from openneutron.executorch.quantize.choices import Choices
from openneutron.executorch.run.runtime import load_program
from tests.executorch.ordered import ordered
from tests.work import calls


def in_order(x: torch.Tensor) -> torch.Tensor:
    """Stays on the CPU: LiteRT has no INT8 form of it."""
    return ordered(x)


class Chain(nn.Module):
    """Convolutions with something between them that only the CPU can do."""

    def __init__(self, between: Callable[[torch.Tensor], torch.Tensor] = in_order) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 2, 3, padding=1)
        self.between = between

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.between(self.first(x)))


class Diamond(nn.Module):
    """One branch passes over the CPU, so first and last operator cannot be one partition."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(2, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        return torch.relu(y) + in_order(y)


IMAGE = (torch.linspace(-1, 1, 72).reshape(1, 2, 6, 6),)


def lower(model: nn.Module, inputs: tuple[torch.Tensor, ...] = IMAGE, **options: Any) -> NeutronPartitioner:
    torch.manual_seed(0)
    program = quantize(model.eval(), inputs, [inputs]).program
    custom = options.pop("custom", None)
    spec = generate_neutron_compile_spec("imxrt700", **options)
    partitioner = NeutronPartitioner(spec, NeutronTargetSpec("imxrt700"), custom)
    to_edge_transform_and_lower(program, partitioner=[partitioner])
    return partitioner


def test_stock_lowering_of_a_channels_last_program_needs_no_further_call() -> None:
    """Exported, quantized and lowered with stock calls only; the islands on the CPU read contiguous tensors."""
    torch.manual_seed(0)
    model = Diamond().eval()
    x = IMAGE[0].to(memory_format=torch.channels_last)
    prepared = prepare_pt2e(torch.export.export(model, (x,)).module(), NeutronQuantizer())
    prepared(x)
    quantized = convert_pt2e(prepared)
    spec = generate_neutron_compile_spec("imxrt700", operators_not_to_delegate=["aten.add.Tensor"])
    partitioner = NeutronPartitioner(spec)
    edge = to_edge_transform_and_lower(torch.export.export(quantized, (x,)), partitioner=[partitioner])
    assert partitioner.copies.count and partitioner.copies.bytes
    (got,) = load_program(bytes(edge.to_executorch().buffer)).run(x)
    assert (got - quantized(x)).abs().max() < 0.03


def test_every_node_has_a_verdict_with_reason_and_source() -> None:
    verdicts = {v.operator: v for v in lower(Chain()).verdicts}
    left = verdicts["aten.topk.default"]
    assert not left.delegated and left.code == "no_lowering" and "aten.topk.default" in left.reason and left.hint
    assert left.source.startswith("test_partitioner.py:")
    convolution = verdicts["aten.convolution.default"]
    assert convolution.delegated and convolution.partition == 1 and convolution.debug_handle > 0
    border = verdicts["quantized_decomposed.quantize_per_tensor.default"]
    assert border.code in ("border", "no_lowering")


@pytest.mark.parametrize("model, partitions", [(Chain(), 2), (Diamond(), 2), (Chain(torch.relu), 1)])
def test_partitions_form_no_cycle_and_run(model: nn.Module, partitions: int) -> None:
    torch.manual_seed(0)
    built = build(model.eval(), IMAGE, calibration=[IMAGE])
    assert len(built.partitions) == partitions
    (got,) = load_program(built.pte).run(*IMAGE)
    assert built.quantized is not None
    assert torch.allclose(got, built.quantized(*IMAGE), atol=0.05)


def test_random_state_is_not_touched() -> None:
    torch.manual_seed(7)
    program = quantize(Chain(), IMAGE, [IMAGE]).program
    edge = to_edge(program)
    before = torch.random.get_rng_state()
    NeutronPartitioner(generate_neutron_compile_spec("imxrt700")).partition(edge.exported_program())
    assert torch.equal(before, torch.random.get_rng_state())


def test_partition_does_not_edit_the_graph() -> None:
    program = quantize(Chain(), IMAGE, [IMAGE]).program
    edge = to_edge(program).exported_program()
    before = [(node.name, node.target, node.args) for node in edge.graph.nodes]
    NeutronPartitioner(generate_neutron_compile_spec("imxrt700")).partition(edge)
    assert before == [(node.name, node.target, node.args) for node in edge.graph.nodes]


@pytest.mark.parametrize(
    "pattern, named",
    [("aten_add", "aten.add.Tensor"), ("aten::addmm", "aten.addmm.default"), ("aten.add.*", "aten.add.Tensor")],
)
def test_excluded_names_are_exact_or_globs(pattern: str, named: str) -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(6, 6)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x) + x

    partitioner = lower(Both(), (torch.randn(2, 6),), operators_not_to_delegate=[pattern])
    left = {v.operator: v for v in partitioner.verdicts if not v.delegated and v.code == "excluded"}
    assert named in left and pattern in left[named].reason
    delegated = {v.operator for v in partitioner.verdicts if v.delegated}
    assert ({"aten.add.Tensor", "aten.addmm.default"} - {named}) <= delegated


def test_no_op_partition_needs_permission() -> None:
    codes = {v.code for v in lower(nn.Flatten()).verdicts if not v.delegated}
    allowed = lower(nn.Flatten(), custom=CustomDelegationOptions(allow_no_op_partitions=True))
    assert "no_op_partition" in codes
    assert [v.operator for v in allowed.verdicts if v.delegated] == ["aten.view_copy.default"]


def test_without_the_hook_unknown_scales_are_a_reason_and_the_state_dict_a_remedy() -> None:
    made = quantize(nn.Conv2d(2, 3, 1), IMAGE, [IMAGE], Choices(per_channel=True))
    quantized, program = made.module, made.program
    spec = generate_neutron_compile_spec("imxrt700")
    blind = NeutronPartitioner(spec)
    to_edge(program).to_backend(blind)
    assert "unknown_constant" in {v.code for v in blind.verdicts}
    seeing = NeutronPartitioner(spec, post_quantization_state_dict=quantized.state_dict())
    to_edge(program).to_backend(seeing)
    assert [v for v in seeing.verdicts if v.delegated]


def test_scales_of_channels_are_known_beside_numbers_that_executorch_makes_tensors_of() -> None:
    class Half(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.quantized = quantize(nn.Conv2d(2, 3, 1), IMAGE, [IMAGE], Choices(per_channel=True)).module

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.quantized(x) / 2.5  # in float, on the CPU

    partitioner = NeutronPartitioner(generate_neutron_compile_spec("imxrt700"))
    edge = to_edge_transform_and_lower(torch.export.export(Half(), IMAGE), partitioner=[partitioner])
    assert any("lifted_tensor_constant" in name for name in edge.exported_program().state_dict)
    assert [v.delegated for v in partitioner.verdicts if v.operator == "aten.convolution.default"] == [True]


def test_several_methods() -> None:
    first = quantize(Chain(torch.relu), IMAGE, [IMAGE], Choices(per_channel=True)).program
    second = quantize(nn.Conv2d(2, 3, 1), IMAGE, [IMAGE], Choices(per_channel=True)).program
    partitioner = NeutronPartitioner(generate_neutron_compile_spec("imxrt700"))
    edge = to_edge_transform_and_lower({"one": first, "two": second}, partitioner=[partitioner])
    for method in ("one", "two"):
        assert len(list(partitions_of(edge.exported_program(method).graph_module))) == 1
    assert {v.partition for v in partitioner.verdicts if v.delegated} == {0, 1}


@pytest.mark.parametrize(
    "arguments, part",
    [
        ({"compile_spec": []}, "no target"),
        ({"neutron_target_spec": NeutronTargetSpec("mcxn94x")}, "target spec is for mcxn94x"),
        ({"custom_delegation_options": {"allow": True}}, "custom_delegation_options"),
        ({"preserve_ops": ["hardswish"]}, "preserve_ops"),
        ({"check_op_support": True}, "check_op_support is True"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], part: str) -> None:
    given = {"compile_spec": generate_neutron_compile_spec("imxrt700"), **arguments}
    with pytest.raises(OptionError, match=part):
        NeutronPartitioner(**given)


def test_another_backend_of_the_same_name_is_refused() -> None:
    from executorch.exir.backend.backend_details import BackendDetails

    from openneutron.errors import OpenNeutronError

    other = type("NeutronBackend", (BackendDetails,), {"__module__": "elsewhere"})
    try:
        with pytest.raises(OpenNeutronError, match="another class named NeutronBackend is loaded, from elsewhere"):
            NeutronPartitioner(generate_neutron_compile_spec("imxrt700"))
    finally:
        del other
        import gc

        gc.collect()


def test_cutting_grows_linearly() -> None:
    def work(count: int) -> int:
        graph = torch.fx.Graph()
        node = graph.placeholder("x")
        quantize_op = torch.ops.quantized_decomposed.quantize_per_tensor.default
        dequantize_op = torch.ops.quantized_decomposed.dequantize_per_tensor.default
        for index in range(count // 3):
            node = graph.call_function(dequantize_op, (node, 1.0, 0, -128, 127, torch.int8))
            node = graph.call_function(
                torch.ops.aten.relu.default if index % 5 else torch.ops.aten.sin.default, (node,)
            )
            node = graph.call_function(quantize_op, (node, 1.0, 0, -128, 127, torch.int8))
        graph.output(node)

        def both() -> None:
            clusters = find_clusters(graph)
            for cluster in clusters[::5]:
                cluster.refuse(cluster.nodes[0], None)  # type: ignore[arg-type]
            assert len(cut(graph, clusters)) >= 1

        return calls(both)

    work(100)  # tables that are filled once
    small, large = work(1000), work(10_000)
    assert large < 12 * small, f"{large / small:.1f} times the work for 10 times the nodes"
