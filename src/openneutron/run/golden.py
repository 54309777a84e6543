"""Compute the golden values: every tensor of a LiteRT model, by LiteRT's reference kernels.

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


class Golden:
    """A model that returns all its tensors; state is kept from run to run.

    Example:
        >>> golden = Golden(Path("wake_word.tflite").read_bytes())
        >>> values = [golden.run([frame]) for frame in frames]
    """

    def __init__(self, data: bytes, *, source: str = "<bytes>") -> None:
        model = read_model(data, source=source)
        graph = model.main
        self._constants = {at: t.data for at, t in enumerate(graph.tensors) if t.data is not None}
        self._inputs = graph.inputs
        # Handles of variables have no value that could be fetched.
        made = (t for op in graph.operators for t in op.outputs if not graph.tensors[t].dtype.is_opaque)
        self._made = list(dict.fromkeys(made))
        # Signatures name the outputs of the original; the graph with all tensors as outputs has none.
        whole = replace(model, graphs=[replace(graph, outputs=self._made), *model.graphs[1:]], signatures=[])
        self._runner = LiteRtRunner(write_model(whole), source=source)

    def run(self, inputs: Sequence[Array]) -> dict[int, Array]:
        """Run once and map the index of every tensor that the main graph reads or computes to its value."""
        given = dict(zip(self._inputs, inputs, strict=True))
        made = dict(zip(self._made, self._runner.run(inputs).outputs.values(), strict=True))
        return self._constants | given | made


def golden_values(data: bytes, inputs: Sequence[Array], *, source: str = "<bytes>") -> dict[int, Array]:
    """Run once and map each tensor index to its value."""
    return Golden(data, source=source).run(inputs)
