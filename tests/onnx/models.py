"""Small ONNX models for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper


def model(
    nodes: Sequence[Any],
    inputs: Mapping[str, Sequence[int | str | None]],
    outputs: Sequence[str],
    stored: Mapping[str, Any] | None = None,
    *,
    opset: int = 21,
    types: Mapping[str, int] | None = None,
    **more: Any,
) -> Any:
    """A model of nodes; inputs by name and shape, stored tensors by name and array."""
    kinds = dict(types or {})
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [
            helper.make_tensor_value_info(name, kinds.get(name, TensorProto.FLOAT), shape)
            for name, shape in inputs.items()
        ],
        [helper.make_tensor_value_info(name, kinds.get(name, TensorProto.FLOAT), None) for name in outputs],
        [numpy_helper.from_array(np.asarray(data), name) for name, data in (stored or {}).items()],
    )
    imports = [helper.make_opsetid("", opset), *more.pop("imports", [])]
    return helper.make_model(graph, opset_imports=imports, ir_version=10, **more)


def node(
    op: str, inputs: Sequence[str], outputs: Sequence[str], name: str = "", domain: str = "", **attributes: Any
) -> Any:
    """A node."""
    return helper.make_node(op, list(inputs), list(outputs), name=name, domain=domain, **attributes)


def convnet(opset: int = 21, batch: int | str = 1) -> Any:
    """Two convolutions, a pool and a linear layer, as exporters write them."""
    rng = np.random.default_rng(0)
    stored = {
        "w1": rng.normal(0, 0.3, (8, 3, 3, 3)).astype(np.float32), "b1": rng.normal(0, 0.1, 8).astype(np.float32),
        "w2": rng.normal(0, 0.2, (16, 8, 3, 3)).astype(np.float32), "w3": rng.normal(0, 0.3, (16, 10)).astype(np.float32),
        "b3": rng.normal(0, 0.1, 10).astype(np.float32), "unused": np.zeros(7, np.float32),
    }  # fmt: skip
    nodes = [
        node("Conv", ["image", "w1", "b1"], ["c1"], "/conv1/Conv", pads=[1, 1, 1, 1]),
        node("Relu", ["c1"], ["r1"], "/relu1/Relu"),
        node("MaxPool", ["r1"], ["p1"], "/pool/MaxPool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["p1", "w2"], ["c2"], "/conv2/Conv", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Relu", ["c2"], ["r2"], "/relu2/Relu"),
        node("GlobalAveragePool", ["r2"], ["g"], "/gap"),
        node("Flatten", ["g"], ["f"], "/flatten"),
        node("MatMul", ["f", "w3"], ["m"], "/fc/MatMul"),
        node("Add", ["m", "b3"], ["logits"], "/fc/Add"),
    ]
    return model(nodes, {"image": [batch, 3, 16, 16]}, ["logits"], stored, opset=opset)


def run_reference(given: Any, arrays: Mapping[str, Any]) -> list[Any]:
    """The outputs by onnxruntime."""
    import onnxruntime

    data = given if isinstance(given, bytes) else given.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(arrays)))
