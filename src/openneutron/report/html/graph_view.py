"""Graph view of the page: which engine runs each node, why, and its cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from openneutron.report.html.layers import Layout, layout
from openneutron.report.model import Kernel, Report


@dataclass(frozen=True)
class Box:
    """One node of a PyTorch program, or one operator of a LiteRT file.

    `kernels` name the kernels that compute it; `shared` is the node whose kernel also computes this one, "" if it has its own
    or none. `inputs` are the positions of the boxes it reads; `host` is the CPU's kernel library, if known. `module` is the
    nn.Module it belongs to, `converts` are conversions before it without a box of their own.
    """

    name: str
    operator: str
    engine: str
    reason: str
    hint: str
    source: str
    graph: int
    inputs: tuple[int, ...]
    cycles: int = 0
    kernels: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()
    shared: str = ""
    host: str = ""
    module: str = ""
    converts: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The operator without its name space and overload."""
        parts = self.operator.split(".")
        return parts[1] if len(parts) > 1 else self.operator


@dataclass(frozen=True)
class Part:
    """One NeutronGraph as a frame: the corners of its boxes and the edges between them, which are drawn thick."""

    label: str
    tip: str
    corners: tuple[tuple[float, float], ...]
    paths: tuple[str, ...]

    @property
    def label_x(self) -> float:
        """Left of the topmost box."""
        return min(self.corners, key=lambda corner: corner[1])[0] - 4

    @property
    def label_y(self) -> float:
        """Above the topmost box."""
        return min(corner[1] for corner in self.corners) - 3


@dataclass(frozen=True)
class Drawing:
    """Boxes with their positions, NeutronGraphs as frames, and the number of folded conversions."""

    boxes: tuple[Box, ...]
    layout: Layout
    parts: tuple[Part, ...] = ()
    folded: int = 0


def drawing(report: Report) -> Drawing:
    """Return the layout, from top to bottom, of the report's nodes, or its operators if it comes from a LiteRT file."""
    boxes = _of_nodes(report) if report.nodes else _of_operators(report)
    priced = _price(boxes, report.kernels, _members_by_handle(report) if report.nodes else _members_by_index(report))
    kept = _fold(priced)
    placed = layout([box.inputs for box in kept])
    return Drawing(tuple(kept), placed, tuple(_parts(kept, placed)), len(priced) - len(kept))


def _fold(boxes: list[Box]) -> list[Box]:
    """Remove conversions on the CPU between two boxes; their readers read their inputs instead."""
    read = {at for box in boxes for at in box.inputs}
    moved: dict[int, tuple[int, ...]] = {}  # old position → new positions that replace it
    names: dict[int, tuple[str, ...]] = {}  # folded box → its name and those folded before it
    kept: list[Box] = []
    for at, box in enumerate(boxes):
        inputs = tuple(dict.fromkeys(new for old in box.inputs for new in moved[old]))
        before = tuple(name for old in box.inputs for name in names.get(old, ()))
        if box.engine == "cpu" and "quantize" in box.operator.lower() and box.inputs and at in read:
            moved[at], names[at] = inputs, (*before, f"{box.label} ({box.name})")
        else:
            moved[at] = (len(kept),)
            kept.append(replace(box, inputs=inputs, converts=before))
    return kept


def _parts(boxes: list[Box], placed: Layout) -> list[Part]:
    found = []
    for graph in dict.fromkeys(box.graph for box in boxes if box.engine == "npu" and box.graph >= 0):
        members = {at for at, box in enumerate(boxes) if box.graph == graph and box.engine == "npu"}
        cycles = sum(boxes[at].cycles for at in members)
        label = f"graph {graph}, {len(members)} node{'' if len(members) == 1 else 's'}"
        paths = tuple(path for maker, reader, path in placed.edges if {maker, reader} <= members)
        tip = f"NeutronGraph {graph}: {cycles:,} cycles"
        found.append(Part(label, tip, tuple(placed.boxes[at] for at in sorted(members)), paths))
    return found


def _of_operators(report: Report) -> list[Box]:
    at = {op.index: position for position, op in enumerate(report.operators)}
    return [
        Box(
            op.name, op.code, _engine(op.converted), op.reason, op.hint, "", op.graph, _earlier(at, op.inputs, position)
        )
        for position, op in enumerate(report.operators)
    ]


def _of_nodes(report: Report) -> list[Box]:
    at = {node.name: position for position, node in enumerate(report.nodes)}
    return [
        Box(
            n.name,
            n.operator,
            _engine(n.delegated),
            n.reason,
            n.hint,
            n.source,
            n.partition,
            _earlier(at, n.inputs, i),
            host="" if n.delegated else n.engine,
            module=n.module,
        )
        for i, n in enumerate(report.nodes)
    ]


def _engine(delegated: bool) -> str:
    return "npu" if delegated else "cpu"


def _earlier(at: Mapping[Any, int], inputs: Iterable[Any], position: int) -> tuple[int, ...]:
    """Return the positions of the inputs; an edge to an unknown or later node is omitted."""
    return tuple(at[one] for one in inputs if at.get(one, position) < position)


def _members_by_index(report: Report) -> Callable[[Kernel], list[int]]:
    at = {op.index: position for position, op in enumerate(report.operators)}
    return lambda kernel: [at[op] for op in kernel.operators if op in at]


def _members_by_handle(report: Report) -> Callable[[Kernel], list[int]]:
    """Return a function that maps a kernel to PyTorch nodes, by the debug handles of its LiteRT operators."""
    operators = {op.index: op for op in report.operators}
    holders: dict[int, list[int]] = {}
    for position, node in enumerate(report.nodes):
        if node.delegated:
            holders.setdefault(node.debug_handle, []).append(position)

    def members(kernel: Kernel) -> list[int]:
        handles = {handle for op in kernel.operators if op in operators for handle in operators[op].debug_handles}
        return sorted({position for handle in handles for position in holders.get(handle, ())})

    return members


def _price(boxes: list[Box], kernels: tuple[Kernel, ...], members_of: Callable[[Kernel], list[int]]) -> list[Box]:
    """Add each kernel's cycles to the box it is named after, else to its first one; the others refer to that box."""
    owned: dict[int, list[Kernel]] = {}
    shared: dict[int, int] = {}
    for kernel in kernels:
        members = members_of(kernel)
        owner = next((at for at in members if boxes[at].name == kernel.name), members[0] if members else -1)
        owned.setdefault(owner, []).append(kernel)
        for other in members:
            if other != owner:
                shared.setdefault(other, owner)
    priced: list[Box] = []
    for at, box in enumerate(boxes):
        mine = owned.get(at)
        if mine:
            names = tuple(kernel.kernel for kernel in mine)
            cycles = sum(kernel.cycles for kernel in mine)
            box = replace(box, cycles=cycles, kernels=names, shape=mine[-1].output_shape)
        elif at in shared:
            other_box = boxes[shared[at]]
            box = replace(box, shared=other_box.module or other_box.name)
        priced.append(box)
    return priced
