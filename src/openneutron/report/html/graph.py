"""The model's graph as the page shows it: who runs each node, why, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from openneutron.report.html.layers import Layout, layout
from openneutron.report.model import Kernel, Report


@dataclass(frozen=True)
class Box:
    """One node of a PyTorch program, or one operator of a LiteRT file.

    `kernels` name the kernels that do its work; `shared` is the node whose kernel does it along with its own, "" when it
    has its own or none.
    """

    name: str
    operator: str
    engine: str
    reason: str
    hint: str
    source: str
    graph: int
    cycles: int
    kernels: tuple[str, ...]
    shape: tuple[int, ...]
    shared: str = ""

    @property
    def label(self) -> str:
        """The operator without its name space and overload."""
        parts = self.operator.split(".")
        return parts[1] if len(parts) > 1 else self.operator


@dataclass(frozen=True)
class Drawing:
    """Boxes with their places."""

    boxes: tuple[Box, ...]
    layout: Layout


def drawing(report: Report) -> Drawing:
    """The report's nodes, or its operators when it comes from a LiteRT file, laid out from top to bottom."""
    if report.nodes:
        boxes, inputs = _nodes(report)
    else:
        boxes, inputs = _operators(report)
    return Drawing(tuple(boxes), layout(inputs))


def _operators(report: Report) -> tuple[list[Box], list[Sequence[int]]]:
    at = {op.index: position for position, op in enumerate(report.operators)}
    owned, shared = _attribute(report.kernels, lambda kernel: [at[op] for op in kernel.operators if op in at])
    boxes = [
        _box(op.name, op.code, op.converted, op.reason, op.hint, "", op.graph, position, owned, shared, report)
        for position, op in enumerate(report.operators)
    ]
    order = [[at[maker] for maker in op.inputs if at.get(maker, position) < position]
             for position, op in enumerate(report.operators)]  # fmt: skip
    return _named(boxes, shared), list(order)


def _nodes(report: Report) -> tuple[list[Box], list[Sequence[int]]]:
    handles: dict[int, list[int]] = {}
    for position, node in enumerate(report.nodes):
        if node.delegated and node.debug_handle >= 0:
            handles.setdefault(node.debug_handle, []).append(position)
    by_index = {op.index: op for op in report.operators}

    def nodes_of(kernel: Kernel) -> list[int]:
        found = {
            position
            for op in kernel.operators
            if op in by_index
            for handle in by_index[op].debug_handles
            for position in handles.get(handle, ())
        }
        return sorted(found)

    owned, shared = _attribute(report.kernels, nodes_of)
    at = {node.name: position for position, node in enumerate(report.nodes)}
    boxes = [
        _box(
            n.name, n.operator, n.delegated, n.reason, n.hint, n.source, n.partition, position, owned, shared, report
        )
        for position, n in enumerate(report.nodes)
    ]  # fmt: skip
    order = [[at[maker] for maker in n.inputs if at.get(maker, position) < position]
             for position, n in enumerate(report.nodes)]  # fmt: skip
    return _named(boxes, shared), list(order)


def _attribute(kernels: Sequence[Kernel], members_of: object) -> tuple[dict[int, list[Kernel]], dict[int, int]]:
    """Kernels by the first box they belong to, and for the other boxes which one that is."""
    assert callable(members_of)
    owned: dict[int, list[Kernel]] = {}
    shared: dict[int, int] = {}
    for kernel in kernels:
        members = members_of(kernel)
        if members:
            owned.setdefault(members[0], []).append(kernel)
            for other in members[1:]:
                shared.setdefault(other, members[0])
    return owned, {box: owner for box, owner in shared.items() if box not in owned}


def _box(
    name: str, operator: str, delegated: bool, reason: str, hint: str, source: str, graph: int, position: int,
    owned: dict[int, list[Kernel]], shared: dict[int, int], report: Report,
) -> Box:  # fmt: skip
    kernels = owned.get(position, [])
    return Box(
        name=name,
        operator=operator,
        engine="npu" if delegated else "cpu",
        reason=reason,
        hint=hint,
        source=source,
        graph=graph,
        cycles=sum(kernel.cycles for kernel in kernels),
        kernels=tuple(kernel.kernel for kernel in kernels),
        shape=kernels[-1].output_shape if kernels else (),
    )


def _named(boxes: list[Box], shared: dict[int, int]) -> list[Box]:
    from dataclasses import replace

    return [
        replace(box, shared=boxes[shared[at]].name) if at in shared else box for at, box in enumerate(boxes)
    ]
