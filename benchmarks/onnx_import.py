"""Import time of an ONNX model of 300 nodes, compared with `torch.export` of the same calls.

python benchmarks/onnx_import.py [runs]
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.timing import interleaved  # noqa: E402  needs the path above

BLOCKS = 60  # of five nodes each


def network() -> bytes:
    """Residual blocks: convolution, batch norm, activation, sum, pool of size 1."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    nodes: list[Any] = []
    stored: dict[str, Any] = {}
    x = "x"
    for at in range(BLOCKS):
        stored[f"w{at}"] = rng.normal(0, 0.1, (16, 16, 3, 3)).astype(np.float32)
        for name in ("scale", "bias", "mean", "variance"):
            stored[f"{name}{at}"] = np.abs(rng.normal(1, 0.1, 16)).astype(np.float32)
        norm = [f"c{at}", f"scale{at}", f"bias{at}", f"mean{at}", f"variance{at}"]
        nodes += [
            helper.make_node("Conv", [x, f"w{at}"], [f"c{at}"], f"/{at}/conv", pads=[1, 1, 1, 1]),
            helper.make_node("BatchNormalization", norm, [f"n{at}"], f"/{at}/norm"),
            helper.make_node("Sigmoid", [f"n{at}"], [f"r{at}"], f"/{at}/act"),
            helper.make_node("Add", [f"r{at}", x], [f"a{at}"], f"/{at}/add"),
            helper.make_node("MaxPool", [f"a{at}"], [f"p{at}"], f"/{at}/pool", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        ]
        x = f"p{at}"
    graph = helper.make_graph(
        nodes, "blocks", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, 16, 16])],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(data, name) for name, data in stored.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return bytes(model.SerializeToString())


def main() -> None:
    import torch

    from openneutron.onnx import load

    warnings.simplefilter("ignore")
    data = network()
    imported = load(data)

    def export() -> object:
        with torch.no_grad():
            return torch.export.export(imported.module, imported.example_inputs)

    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    seconds = interleaved({"import": lambda: load(data), "torch.export": export}, runs)
    ours, theirs = seconds["import"], seconds["torch.export"]
    print(f"{5 * BLOCKS} nodes: import {ours:.2f} s, torch.export {theirs:.2f} s, {ours / theirs:.2f} of it")


if __name__ == "__main__":
    main()
