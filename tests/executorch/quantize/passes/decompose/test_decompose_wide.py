"""Activations without a 16-bit kernel of LiteRT's: written out where 16 bits were asked for, whole elsewhere."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torchao.quantization.pt2e.quantizer import SharedQuantizationSpec
from torchao.quantization.pt2e.quantizer.quantizer import Q_ANNOTATION_KEY

from openneutron.executorch.capture.export import export
from openneutron.executorch.fx import operator_name
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.executorch.quantize.passes.decompose.decompose_wide import decompose_wide, wide_operators


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList([nn.Hardswish(), nn.Hardsigmoid(), nn.SiLU(), nn.GELU(), nn.PReLU(3)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for part in self.parts:
            x = part(4 * x)
        return x


def prepared(quantizer: NeutronQuantizer) -> Any:
    x = (torch.randn(1, 3, 4, 4),)
    return quantizer.transform_for_annotation(export(Net().eval(), x).module())


def kept(module: Any) -> set[str]:
    names = {operator_name(node).split(".")[1] for node in module.graph.nodes if operator_name(node)}
    return names & {"hardswish", "hardsigmoid", "silu", "gelu", "prelu"}


def test_all_of_them_go_in_a_16_bit_model_and_compute_the_same() -> None:
    made = prepared(NeutronQuantizer(activations="int16"))
    assert not kept(made)
    torch.manual_seed(0)
    x = torch.randn(1, 3, 4, 4)
    assert torch.allclose(made(x), Net().eval()(x), atol=2e-3)


def test_what_stays_in_8_bits_stays_whole() -> None:
    assert kept(prepared(NeutronQuantizer())) == {"hardswish", "hardsigmoid", "silu", "gelu", "prelu"}
    some = prepared(NeutronQuantizer(precision={"SiLU": "int16"}))
    assert kept(some) == {"hardswish", "hardsigmoid", "gelu", "prelu"}


def test_the_price_of_16_bits_counts_the_operators_that_one_becomes() -> None:
    x = (torch.randn(1, 3, 4, 4),)
    for part in Net().parts:
        module = export(part.eval(), x).module()
        (count,) = {wide_operators(node) for node in module.graph.nodes} - {0}
        assert decompose_wide(module, lambda node: True) == 1
        free = ("aten.reshape.default", "aten.relu6.default")  # a clamp is part of the sum in front of it
        made = [node for node in module.graph.nodes if operator_name(node) and operator_name(node) not in free]
        assert sum("_guards" not in node.name for node in made) == count


def test_a_slope_above_one_needs_its_own_form() -> None:
    x = torch.randn(1, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    for slopes in ([0.1, -0.5, 1.0], [0.1, 1.5, 0.3]):
        part = nn.PReLU(3)
        part.weight.data = torch.tensor(slopes)
        module = export(part.eval(), (x,)).module()
        decompose_wide(module, lambda node: True)
        module.recompile()
        assert torch.allclose(module(x), part(x), atol=1e-6)
        limits = [node for node in module.graph.nodes if operator_name(node) == "aten.maximum.default"]
        assert len(limits) == (max(slopes) <= 1)


def test_16_bits_by_the_name_of_a_node_reach_what_is_written_for_it() -> None:
    x = (torch.randn(1, 3, 4, 4),)
    module = export(nn.Sequential(nn.Conv2d(3, 3, 1), nn.PReLU(3)).eval(), x).module()
    (name,) = (node.name for node in module.graph.nodes if operator_name(node) == "aten.prelu.default")
    quantizer = NeutronQuantizer().set_node(name, "int16")
    annotated = quantizer.annotate(quantizer.transform_for_annotation(module))
    dtypes = {
        operator_name(node).split(".")[1]: quantizer_dtype(node)
        for node in annotated.graph.nodes
        if operator_name(node)
    }
    assert dtypes["mul"] == dtypes["maximum"] == torch.int16 and dtypes["conv2d"] == torch.int8


def quantizer_dtype(node: Any) -> Any:
    spec = node.meta[Q_ANNOTATION_KEY].output_qspec if Q_ANNOTATION_KEY in node.meta else None
    while isinstance(spec, SharedQuantizationSpec):
        edge = spec.edge_or_node
        annotation = (edge[1] if isinstance(edge, tuple) else edge).meta[Q_ANNOTATION_KEY]
        spec = annotation.input_qspec_map[edge[0]] if isinstance(edge, tuple) else annotation.output_qspec
    return getattr(spec, "dtype", None)


def test_a_written_out_hard_swish_chosen_by_name_has_sixteen_bits_in_all_parts() -> None:
    """It is recognised first and taken apart then: what was chosen for its name is meant for every part."""
    from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e

    from openneutron.executorch import NeutronQuantizer
    from openneutron.executorch.quantize.pt2e import convert

    class Written(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Conv2d(3, 4, 1), nn.Conv2d(4, 4, 3, padding=1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.first(x)
            x = x * torch.clamp(x + 3, 0, 6) / 6
            return self.second(x + 0.5)

    image = torch.randn(1, 3, 6, 6)

    def quantized(layers: dict[str, str]) -> torch.fx.GraphModule:
        prepared = prepare_pt2e(export(Written().eval(), (image,)).module(), NeutronQuantizer(precision=layers))
        prepared(image)
        return convert(prepared)

    names = [node.name for node in quantized({}).graph.nodes if node.op == "call_function"]
    chosen = [name for name in names if "hardswish" in name or name.startswith(("conv2d", "add"))]
    assert len(chosen) == 4
    wide = quantized(dict.fromkeys(chosen, "int16"))
    stored = [node.args[-1] for node in wide.graph.nodes if "quantize_per_tensor" in str(node.target)]
    assert set(stored) == {torch.int16}
