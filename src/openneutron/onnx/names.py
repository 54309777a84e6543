"""The one key under which a node of a program says which node of an ONNX model it comes from."""

from __future__ import annotations

ONNX_NODE = "onnx_node"
