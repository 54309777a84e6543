"""Golden results of hybrid programs: each engine by its own definition, composed.

Delegates are LiteRT's reference on the model that was compiled, `cortex_m::*` operators their Python references, portable
operators torch. Two definitions of exact in one program, so a failure says which engine's node differs first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from executorch.exir.delegate import executorch_call_delegate
from torch.fx.node import map_arg

from openneutron.executorch.encoding import Constants
from openneutron.executorch.fx import GETITEM, operator_name
from openneutron.executorch.pipeline import Built
from openneutron.litert.read import read_model
from tests.golden import reference


def golden(built: Built, inputs: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    """Interpret the lowered program node by node."""
    program = built.edge
    constants = Constants(program)
    given = dict(zip(program.graph_signature.user_inputs, inputs, strict=True))
    waiting = iter(built.partitions)
    values: dict[Any, Any] = {}
    for node in program.graph.nodes:
        if node.op == "placeholder":
            values[node] = given[node.name] if node.name in given else torch.from_numpy(constants.array(node).copy())
        elif node.op == "output":
            return [values[one] for one in node.args[0]]
        elif node.op == "call_function":
            values[node] = _call(node, values, waiting)
    raise AssertionError("the program has no output")


def _call(node: Any, values: dict[Any, Any], waiting: Any) -> Any:
    if node.target is executorch_call_delegate:
        return _delegate(next(waiting), [values[one] for one in node.args[1:]])
    args, kwargs = map_arg((node.args, node.kwargs), lambda one: values[one])
    if operator_name(node) == GETITEM:
        return args[0][args[1]]
    if "alloc" in str(node.target):
        return torch.zeros(node.meta["val"].shape, dtype=torch.uint8)
    made = node.target(*args, **kwargs)
    return made.contiguous() if isinstance(made, torch.Tensor) and node.meta["val"].is_contiguous() else made


def _delegate(partition: Any, arguments: list[torch.Tensor]) -> list[torch.Tensor]:
    graph = read_model(partition.litert).main
    feeds = []
    for tensor, place, last in zip(graph.inputs, partition.input_map, partition.input_formats, strict=True):
        x = arguments[place].contiguous()
        x = x.movedim(1, -1) if last else x
        feeds.append(x.contiguous().numpy().reshape(graph.tensors[tensor].shape))
    results = reference(partition.litert, feeds)
    return [
        torch.from_numpy(np.moveaxis(y, -1, 1).copy() if last else y.copy())
        for y, last in zip(results, partition.output_formats, strict=True)
    ]
