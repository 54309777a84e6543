"""Building hybrid programs and their golden results: each engine by its own definition, composed.

Delegates are LiteRT's reference on the model that was compiled, `cortex_m::*` operators their Python references, portable
operators torch. Two definitions of exact in one program, so a failure says which engine's node differs first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from executorch.exir.delegate import executorch_call_delegate
from torch import nn
from torch.fx.node import map_arg

from openneutron.executorch.fx import GETITEM, operator_name
from openneutron.executorch.lower.encoding import Constants
from openneutron.executorch.pipeline import Built, build
from openneutron.executorch.run.runtime import load_program
from openneutron.litert.read import read_model
from tests.executorch.harness import Branches
from tests.executorch.recipes.networks import settled
from tests.golden import reference

# Neutron could take these; kept from it, Cortex-M has the logarithms and the product, and nobody has the sine.
KEPT = (
    "aten.log1p.default", "aten.log2.default", "aten.log10.default", "aten.div.Tensor", "aten.mul.Tensor", "aten.sin.default",
)  # fmt: skip


def built(model: nn.Module, inputs: list[tuple[torch.Tensor, ...]], **options: Any) -> Built:
    options["operators_not_to_delegate"] = (*KEPT, *options.get("operators_not_to_delegate", ()))
    return build(settled(model), inputs[0], calibration=inputs, recipe="imxrt700cm", **options)


# torch's vectorised sine and the C library's, which portable kernels call, differ in the last bit or two.
FLOAT = 2.0**-21


def check(program: Built, inputs: tuple[torch.Tensor, ...], *, in_float: tuple[int, ...] = ()) -> None:
    """The runtime's bits are the composition of the engines' references; `in_float` names outputs of float kernels."""
    got = load_program(program.pte).run(*inputs)
    for index, (here, wanted) in enumerate(zip(got, golden(program, inputs), strict=True)):
        apart = float((here - wanted).abs().max())
        allowed = FLOAT * float(wanted.abs().max()) if index in in_float else 0.0
        assert here.shape == wanted.shape and apart <= allowed, f"output {index} differs by {apart:.3g}"


def engines(program: Built) -> dict[str, str]:
    """Operator → engine of everything that computes."""
    return {v.operator: v.engine for v in program.report.nodes if not v.operator.startswith("quantized_decomposed")}


def operators(program: Built) -> list[str]:
    return [operator_name(node) for node in program.edge.graph.nodes if node.op == "call_function"]


def side_by_side(
    cases: dict[str, tuple[nn.Module, tuple[torch.Tensor, ...]]],
) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Independent networks as one program, to pay for one export."""
    model = Branches({name: module for name, (module, _) in cases.items()}, [len(x) for _, x in cases.values()])
    return model, tuple(x for _, inputs in cases.values() for x in inputs)


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
