"""precision: 16-bit activations from PyTorch, whole models and mixed ones, at 0 LSB against LiteRT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torchao.quantization.pt2e.quantizer.quantizer import Q_ANNOTATION_KEY

from openneutron.errors import OptionError
from openneutron.executorch.capture.export import export
from openneutron.executorch.quantize import NeutronQuantizer, int8, int16
from openneutron.executorch.quantize.precision import Precisions
from openneutron.litert.graph import DType
from openneutron.litert.read import read_model
from tests.executorch.harness import check

CASES: dict[str, Callable[[], tuple[Any, tuple[torch.Tensor, ...]]]] = {
    "conv and relu": lambda: (nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU()), (torch.randn(1, 8, 9, 9),)),
    "depth-wise": lambda: (nn.Conv2d(8, 8, 3, groups=8), (torch.randn(1, 8, 9, 9),)),
    "transposed": lambda: (nn.ConvTranspose2d(4, 6, 3, stride=2), (torch.randn(1, 4, 5, 5),)),
    "linear": lambda: (nn.Linear(40, 24), (torch.randn(3, 40),)),
    "matrix product": lambda: (torch.bmm, (torch.randn(2, 5, 7), torch.randn(2, 7, 6))),
    "sum": lambda: (torch.add, (torch.randn(2, 30), torch.randn(2, 30))),
    "difference": lambda: (torch.sub, (torch.randn(2, 30), 3 * torch.randn(2, 30))),
    "product": lambda: (torch.mul, (torch.randn(2, 30), torch.randn(2, 30))),
    "times a number": lambda: (lambda x: x * 0.37, (torch.randn(2, 30),)),
    "maximum": lambda: (torch.maximum, (torch.randn(2, 30), torch.randn(2, 30))),
    "concatenation": lambda: (
        lambda x, y: torch.cat([x, y], 1),
        (torch.randn(2, 3, 4, 4), 2 * torch.randn(2, 5, 4, 4)),
    ),
    "padding": lambda: (lambda x: F.pad(x, (1, 2, 0, 1)), (torch.randn(1, 3, 4, 4),)),
    "slice": lambda: (lambda x: x[:, 1:3, ::2], (torch.randn(1, 4, 6, 4),)),
    "picked rows": lambda: (lambda x: x[:, [3, 0, 1, 1]], (torch.randn(1, 4, 6, 4),)),
    "permutation": lambda: (lambda x: x.permute(0, 2, 3, 1).reshape(1, -1), (torch.randn(1, 4, 6, 4),)),
    "average pool": lambda: (nn.AvgPool2d(2), (torch.randn(1, 4, 6, 6),)),
    "max pool": lambda: (nn.MaxPool2d(3, 2, 1), (torch.randn(1, 4, 7, 7),)),
    "mean": lambda: (lambda x: x.mean((2, 3)), (torch.randn(1, 4, 7, 7),)),
    "relu6": lambda: (nn.ReLU6(), (4 * torch.randn(1, 50),)),
    "hardtanh": lambda: (nn.Hardtanh(-1, 1), (2 * torch.randn(1, 50),)),
    "leaky relu": lambda: (nn.LeakyReLU(0.1), (torch.randn(1, 50),)),
    "bilinear": lambda: (nn.Upsample(scale_factor=2, mode="bilinear"), (torch.randn(1, 3, 5, 5),)),
    "nearest": lambda: (nn.Upsample(scale_factor=2), (torch.randn(1, 3, 5, 5),)),
    "negation": lambda: (torch.neg, (torch.randn(1, 30),)),
}
FUNCTIONS: dict[str, Callable[[], tuple[Any, tuple[torch.Tensor, ...]]]] = {
    "sigmoid": lambda: (nn.Sigmoid(), (3 * torch.randn(1, 300),)),
    "tanh": lambda: (nn.Tanh(), (2 * torch.randn(1, 300),)),
    "softmax": lambda: (nn.Softmax(-1), (3 * torch.randn(4, 20),)),
}


@pytest.mark.parametrize("cases", [CASES, FUNCTIONS], ids=["exact", "by tables"])
def test_every_operator(cases: dict[str, Any]) -> None:
    """As tight as INT8: one step from PT2E, and what LiteRT's own tables miss."""
    found = check(cases, activations="int16")
    tensors = [t for p in found.built.partitions for t in read_model(p.litert).main.tensors if t.data is None]
    assert {t.dtype for t in tensors} == {DType.INT16}


class Net(nn.Module):
    """A body and a head, with GELU in between, which LiteRT has for 8 bits only: in 16 it is written out."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Sequential(nn.Linear(8, 10), nn.Softmax(-1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(F.gelu(self.body(x)).mean((2, 3)))


IMAGE = (torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(0)),)


@pytest.mark.parametrize(
    ("options", "types"),
    {
        "head in 16": ({"precision": {"*.head": "int16"}}, ("int8", "int16")),
        "all but the head": ({"activations": "int16", "precision": "*.head=int8"}, ("int16", "int8")),
        "everything": ({"activations": "int16"}, ("int16", "int16")),
    }.values(),
    ids=["head in 16", "all but the head", "everything"],
)
def test_seams_are_requantized(options: dict[str, Any], types: tuple[str, str]) -> None:
    found = check({"net": lambda: (Net(), IMAGE)}, **options)
    graph = read_model(found.built.partitions[0].litert).main
    first, last = graph.tensors[graph.inputs[0]].dtype, graph.tensors[graph.outputs[0]].dtype
    assert (str(first), str(last)) == types
    assert ("QUANTIZE" in found.codes) == (first != last) and ("GELU" in found.codes) == (types[0] == "int8")


def _types(quantizer: NeutronQuantizer) -> dict[str, torch.dtype]:
    module = export(Net().eval(), IMAGE).module()
    quantizer.annotate(quantizer.transform_for_annotation(module))
    found = {}
    for node in module.graph.nodes:
        spec = node.meta[Q_ANNOTATION_KEY].output_qspec if Q_ANNOTATION_KEY in node.meta else None
        if spec is not None and hasattr(spec, "dtype"):
            found[node.name] = spec.dtype
    return found


def test_modules_types_and_nodes_are_chosen() -> None:
    wide = torch.int16
    assert _types(NeutronQuantizer().set_module_name("head", int16))["linear"] is wide
    assert _types(NeutronQuantizer().set_module_type(nn.Linear, "int16"))["linear"] is wide
    assert _types(NeutronQuantizer().set_node("softmax", int16))["softmax"] is wide
    chosen = _types(NeutronQuantizer(activations="int16").set_module_name("head", int8))
    assert chosen["linear"] is torch.int8 and "gelu" not in chosen and chosen["relu"] is wide
    assert _types(NeutronQuantizer())["gelu"] is torch.int8


def test_patterns() -> None:
    chosen = Precisions.of(["*.conv=int16", "body.3=int8"])
    assert chosen.of_names({"body.3.conv"}) is int8 and chosen.of_names({"body.4.conv"}) is int16
    assert chosen.of_names({"body.4"}) is None and chosen.default is int8
    assert Precisions.of("int16").default is int16 and Precisions.of({}, "int16").default is int16


def test_an_unknown_precision() -> None:
    with pytest.raises(OptionError, match="activations of int4"):
        NeutronQuantizer(activations="int4")
    with pytest.raises(OptionError, match="one of int8, int16"):
        NeutronQuantizer().set_module_name("head", "float16")
