"""Put outputs in the order in which a delegate returns them: ExecuTorch sorts a partition's nodes anew after the trial.

A trial's schedule is kept as it is, because another order of operators may find none that fits. Only the lists of outputs
change, in the LiteRT model and in the converted one; the microcode's buffers are found by name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from torch.fx import Node

from openneutron.executorch.lower.lowering import Lowered
from openneutron.litert.graph import Model
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model


def reorder_outputs(lowered: Lowered, results: Sequence[Node]) -> Lowered:
    """The lowering with its outputs in the order of `results`; the given one, if they are in that order."""
    if lowered.outputs == list(results):
        return lowered
    places = [lowered.outputs.index(node) for node in results]
    main = lowered.model.main
    return dataclasses.replace(
        lowered,
        model=_with_outputs(lowered.model, [main.outputs[place] for place in places]),
        outputs=list(results),
        output_formats=[lowered.output_formats[place] for place in places],
    )


def reorder_converted(converted: bytes, source: Model) -> bytes:
    """The converted model with its outputs in the order of the model it was made from."""
    model = read_model(converted, source="the converted partition")
    tensors = {model.main.tensors[index].name: index for index in model.main.outputs}
    outputs = [tensors[source.main.tensors[index].name] for index in source.main.outputs]
    return converted if outputs == model.main.outputs else write_model(_with_outputs(model, outputs))


def _with_outputs(model: Model, outputs: list[int]) -> Model:
    return dataclasses.replace(model, graphs=[dataclasses.replace(model.main, outputs=outputs), *model.graphs[1:]])
