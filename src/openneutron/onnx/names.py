"""The metadata key under which a node of a program names its node of an ONNX model."""

from __future__ import annotations

ONNX_NODE = "onnx_node"
