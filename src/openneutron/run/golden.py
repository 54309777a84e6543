"""The golden values: every tensor of a LiteRT model, computed by LiteRT's reference kernels.

The exceptions are named by `golden_source`: operators without a usable reference kernel, and those of `reference_forms`.

Example:
    >>> values = golden_values(Path("model.tflite").read_bytes(), [image])
    >>> values[graph.outputs[0]]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.run.runner import LiteRtRunner

Array = npt.NDArray[Any]


def golden_values(data: bytes, inputs: Sequence[Array], *, source: str = "<bytes>") -> dict[int, Array]:
    """Tensor index → value, of every tensor that the main graph reads or computes."""
    model = read_model(data, source=source)
    graph = model.main
    values: dict[int, Array] = {at: t.data for at, t in enumerate(graph.tensors) if t.data is not None}
    values |= dict(zip(graph.inputs, inputs, strict=True))
    # Handles of variables have no value that could be fetched.
    made = list(dict.fromkeys(t for op in graph.operators for t in op.outputs if not graph.tensors[t].dtype.is_opaque))
    # Signatures name the outputs of the original; the graph with all tensors as outputs has none.
    whole = replace(model, graphs=[replace(graph, outputs=made), *model.graphs[1:]], signatures=[])
    outputs = LiteRtRunner(write_model(whole), source=source).run(inputs).outputs
    return values | dict(zip(made, outputs.values(), strict=True))
