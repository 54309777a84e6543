"""Whole-path checks of operators: PyTorch → `.pte` → stock runtime, several cases in one program to pay for one export.

Every case is a branch with inputs and an output of its own. `check` asserts that nothing but the border runs on the CPU,
that the runtime's bytes equal LiteRT's reference on the very model that was compiled, and that they lie within the
operator's tolerance of the converted PT2E graph, which is what catches a forgotten requantize.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from executorch.exir.delegate import executorch_call_delegate
from torch import nn

from openneutron.executorch.fx import arguments, is_dequantize
from openneutron.executorch.operators import lowerings
from openneutron.executorch.pipeline import Built, build, in_layout
from openneutron.executorch.run.runtime import load_program
from openneutron.litert.read import read_model
from tests.golden import reference

Inputs = tuple[torch.Tensor, ...]
Case = Callable[[], tuple[nn.Module | Callable[..., Any], Inputs]]
IMAGE_RANK = 4  # the only rank for which PyTorch knows channels-last


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


class Branches(nn.Module):
    """Independent cases side by side: each takes its inputs and gives its outputs."""

    def __init__(self, cases: dict[str, nn.Module], counts: list[int]) -> None:
        super().__init__()
        self.cases = nn.ModuleDict(cases)
        self.counts = counts

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        results: list[torch.Tensor] = []
        at = 0
        for module, count in zip(self.cases.values(), self.counts, strict=True):
            made = module(*inputs[at : at + count])
            results += made if isinstance(made, (tuple, list)) else [made]
            at += count
        return tuple(results)


@dataclass
class Checked:
    """A built program and the stored values each side gives for the same inputs."""

    built: Built
    codes: list[str]

    @property
    def transposes(self) -> int:
        """Transposes inside all partitions."""
        return self.codes.count("TRANSPOSE")


def check(
    cases: Mapping[str, Case], *, seed: int = 0, partitions: int = 1, layouts: bool = False, **options: Any
) -> Checked:
    """Build all cases as one program and compare the three sides; raises an AssertionError that names the case.

    With `layouts` the cases that read images are there once more, with images that are channels-last.
    """
    torch.manual_seed(seed)
    made = {name: case() for name, case in cases.items()}
    for name, case in cases.items() if layouts else ():
        module, inputs = case()
        if any(x.dim() == IMAGE_RANK for x in inputs):
            made[f"{name}, channels last"] = module, in_layout(inputs, True)
    modules = {name: m if isinstance(m, nn.Module) else Function(m) for name, (m, _) in made.items()}
    model = Branches(modules, [len(inputs) for _, inputs in made.values()]).eval()
    inputs = tuple(x for _, given in made.values() for x in given)
    built = build(model, inputs, calibration=[inputs], **options)
    left = [v for v in built.report.nodes if not v.delegated and v.code != "border"]
    assert not left, "; ".join(f"{v.source} {v.operator}: {v.reason} [{v.code}]" for v in left)
    assert len(built.partitions) == partitions, f"{len(built.partitions)} partitions"
    codes = [op.code for p in built.partitions for op in read_model(p.litert).main.operators]
    exact = representable(built, inputs)
    got = load_program(built.pte).run(*exact)
    assert built.quantized is not None
    with torch.no_grad():
        wanted = built.quantized(*exact)
    compare(built, exact, got, wanted, list(made))
    return Checked(built, codes)


def representable(built: Built, inputs: Inputs) -> Inputs:
    """Inputs rounded to values that quantizing keeps, so that no side's rounding of the border matters."""
    nodes = {node.name: node for node in built.edge.graph.nodes}
    exact = []
    for name, x in zip(built.edge.graph_signature.user_inputs, inputs, strict=True):
        users = list(nodes[name].users)
        given = arguments(users[0])
        stored = torch.clamp(
            torch.round(x / given["scale"]) + given["zero_point"], given["quant_min"], given["quant_max"]
        )
        exact.append(((stored - given["zero_point"]) * given["scale"]).to(torch.float32))
    return tuple(exact)


def compare(built: Built, inputs: Inputs, got: Any, wanted: Any, names: list[str]) -> None:
    """Runtime against reference at 0 LSB, and against PT2E at the operators' tolerance."""
    stored = dict(zip(built.edge.graph_signature.user_inputs, inputs, strict=True))
    # What has no rule of its own is part of a table, which is exact.
    rules = [lowerings()[v.operator] for v in built.report.nodes if v.delegated and v.operator in lowerings()]
    expected = _expected(built, stored)
    wide = any(golden.dtype == np.int16 for golden, _, _ in expected)
    tolerance = max((rule.wide_tolerance if wide else rule.tolerance for rule in rules), default=0)
    for index, (y, pt2e) in enumerate(zip(got, wanted, strict=True)):
        name = names[index] if len(names) == len(got) else f"output {index}"
        golden, scale, zero = expected[index]
        here = np.rint(y.numpy().astype(np.float64) / scale).astype(int) + zero
        wrong = np.abs(here - golden.astype(int))
        assert not wrong.any(), f"{name}: {int(wrong.max())} LSB from LiteRT's reference at {np.argwhere(wrong)[0]}"
        apart = np.abs(y.numpy().astype(np.float64) - pt2e.numpy()) / scale
        worst = np.unravel_index(int(apart.argmax()), apart.shape)
        assert apart[worst] < tolerance + 0.01, f"{name}: {apart[worst]:.2f} LSB from PT2E at {worst}"


def _expected(built: Built, stored: dict[str, torch.Tensor]) -> list[tuple[Any, float, int]]:
    """Per program output: the reference's stored values in logical order, scale, zero point."""
    values: dict[Any, Any] = dict(stored)
    results: dict[Any, Any] = {}
    at = iter(built.partitions)
    module = built.edge.graph_module
    for node in module.graph.nodes:
        if node.op == "placeholder" and node.name in values:
            results[node] = values[node.name]
        elif node.op == "call_function" and node.target is executorch_call_delegate:
            results[node] = _run_partition(next(at), [results[arg] for arg in node.args[1:]])
        elif node.op == "call_function" and str(getattr(node.target, "__name__", "")) == "getitem":
            results[node] = results[node.args[0]][node.args[1]]
        elif node.op == "call_function" and not is_dequantize(node):
            results[node] = node.target(*(results.get(arg, arg) for arg in node.args), **node.kwargs)
        elif node.op == "call_function":
            results[node] = results[node.args[0]]
    found = []
    for node in module.graph.output_node().args[0]:
        if not is_dequantize(node):
            assert not node.meta["val"].is_floating_point(), f"{node} leaves the program without a dequantize"
            found.append((results[node].numpy(), 1.0, 0))
            continue
        given = arguments(node)
        found.append((results[node].numpy(), float(given["scale"]), int(given["zero_point"])))
    return found


def _run_partition(partition: Any, arguments_: list[torch.Tensor]) -> list[torch.Tensor]:
    graph = read_model(partition.litert).main
    feeds = []
    for tensor, place, layout in zip(graph.inputs, partition.input_map, partition.input_formats, strict=True):
        x = arguments_[place].contiguous()
        x = x.movedim(1, -1) if layout else x
        feeds.append(x.contiguous().numpy().reshape(graph.tensors[tensor].shape))
    outputs = reference(partition.litert, feeds)
    return [
        torch.from_numpy(np.moveaxis(y, -1, 1).copy() if layout else np.asarray(y).copy())
        for y, layout in zip(outputs, partition.output_formats, strict=True)
    ]


def reasons(module: nn.Module | Callable[..., Any], inputs: Inputs, **options: Any) -> dict[str, str]:
    """Reason code → sentence of every node that was left on the CPU."""
    torch.manual_seed(0)
    model = module if isinstance(module, nn.Module) else Function(module)
    built = build(model.eval(), inputs, calibration=[inputs], **options)
    return {v.code: v.reason for v in built.report.nodes if not v.delegated and v.code != "border"}
