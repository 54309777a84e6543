"""A program as one LiteRT file: mixed with LiteRT's own kernels, in either layout, with the model's names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from openneutron.errors import UnsupportedError
from openneutron.executorch.litert_file import compile_to_litert
from openneutron.executorch.pipeline import quantize
from openneutron.litert.read import read_model
from openneutron.onnx import load
from tests.onnx.models import convnet, model, node


@pytest.fixture(scope="module")
def program() -> Any:
    imported = load(convnet().SerializeToString())
    torch.manual_seed(0)
    return quantize(imported.module, imported.example_inputs, [(torch.randn(1, 3, 16, 16),) for _ in range(4)]).program


def compiled(program: Any, **options: Any) -> Any:
    return compile_to_litert(
        program, None, inputs=("image",), outputs=("logits",), optimize="fast", name="net.onnx", **options
    )


def test_names_are_the_models_and_what_the_npu_leaves_runs_in_litert(program: Any) -> None:
    whole = compiled(program)
    mixed = compiled(program, operators_not_to_delegate=("MAX_POOL_2D",))
    graph = read_model(mixed.data, source="mixed").main
    assert [op.label for op in graph.operators] == ["NeutronGraph", "MAX_POOL_2D", "NeutronGraph"]
    assert [graph.tensors[one].name for one in (*graph.inputs, *graph.outputs)] == ["image", "logits"]
    assert "/conv1/Conv" in {kernel.name for kernel in whole.report.kernels}
    image = np.random.default_rng(0).integers(-128, 128, graph.tensors[graph.inputs[0]].shape, np.int8)
    assert all(np.array_equal(a, b) for a, b in zip(whole.run(image), mixed.run(image), strict=True))


def test_images_are_nhwc_unless_the_npu_transposes(program: Any) -> None:
    nchw = compiled(program, use_neutron_for_format_conversion=True)
    graph = read_model(nchw.data, source="nchw").main
    assert graph.tensors[graph.inputs[0]].shape == (1, 3, 16, 16)
    image = np.random.default_rng(0).integers(-128, 128, (1, 3, 16, 16), np.int8)
    (wanted,) = compiled(program).run(image.transpose(0, 2, 3, 1))
    assert np.array_equal(nchw.run(image)[0], wanted)


def test_a_node_without_a_litert_form_is_named() -> None:
    nodes = [node("Relu", ["x"], ["r"], "/relu"), node("TopK", ["r", "k"], ["y", "i"], "/top")]
    imported = load(model(nodes, {"x": [1, 8]}, ["y"], {"k": np.array([2])}).SerializeToString())
    with pytest.raises(UnsupportedError, match=r"net\.onnx: node `/top` cannot be written to LiteRT.*--cut-head"):
        compile_to_litert(
            imported.module, imported.example_inputs, calibration=[imported.example_inputs], name="net.onnx"
        )


def test_a_rest_that_litert_does_not_take_is_refused() -> None:
    """16-bit activations plus an INT8 constant, as onnxruntime's quantizer writes it: LiteRT adds equal types only."""
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        node("DequantizeLinear", ["k", "s", "zk"], ["dk"]), node("Add", ["d", "dk"], ["a"], "/add"),
        node("QuantizeLinear", ["a", "s", "z"], ["o"]), node("DequantizeLinear", ["o", "s", "z"], ["y"]),
    ]  # fmt: skip
    stored = {"s": np.float32(0.01), "z": np.int16(0), "zk": np.int8(0), "k": np.arange(4, dtype=np.int8)}
    imported = load(model(nodes, {"x": [1, 4]}, ["y"], stored).SerializeToString())
    with pytest.raises(UnsupportedError, match=r"the rest of the model cannot be written to LiteRT.*INT16 != INT8"):
        compile_to_litert(imported.program, None, inputs=("x",), outputs=("y",), name="net.onnx", optimize="fast")


class BoxesAndScores(torch.nn.Module):
    """A head that joins boxes of up to 640 pixels with scores below 1, as detectors do."""

    def __init__(self) -> None:
        super().__init__()
        self.boxes, self.scores = torch.nn.Conv2d(3, 4, 1), torch.nn.Conv2d(3, 2, 1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        boxes, scores = self.boxes(image).flatten(2) * 300, self.scores(image).flatten(2).sigmoid()
        return torch.cat([boxes, scores], 1).permute(0, 2, 1)


def test_parts_of_different_ranges_are_joined_in_float() -> None:
    torch.manual_seed(0)
    images = [(torch.randn(1, 3, 8, 8),) for _ in range(4)]
    made = compile_to_litert(BoxesAndScores().eval(), images[0], calibration=images, name="head", outputs=("found",))
    graph = read_model(made.data, source="head").main
    assert [op.label for op in graph.operators] == ["NeutronGraph", "DEQUANTIZE", "DEQUANTIZE", "CONCATENATION"]
    output, entry = graph.tensors[graph.outputs[0]], graph.tensors[graph.inputs[0]]
    assert (output.name, str(output.dtype), output.shape) == ("found", "float32", (1, 64, 6))
    assert entry.quantization is not None
    (scale, zero), (given,) = entry.quantization.scalar, images[0]
    stored = np.clip(np.rint(given.numpy().transpose(0, 2, 3, 1) / scale) + zero, -128, 127).astype(np.int8)
    (found,) = made.run(stored)
    wanted = made.quantized(given).detach().numpy()
    step = [1.01 * np.diff(np.unique(wanted[..., rows])).min() for rows in (slice(0, 4), slice(4, 6))]
    off = np.abs(found - wanted)
    assert off[..., :4].max() <= step[0] and off[..., 4:].max() <= step[1] < step[0] / 100
