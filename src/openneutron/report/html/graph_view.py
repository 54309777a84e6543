"""Graph view of the page: which engine runs each node, why, and its cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from openneutron.report.model import Kernel, Report


@dataclass(frozen=True)
class Box:
    """One node of a PyTorch program, or one operator of a LiteRT file.

    `kernels` name the kernels that compute it; `shared` is the node whose kernel also computes this one, "" if it has its own
    or none. `inputs` are the positions of the boxes it reads; `host` is the CPU's kernel library, if known. `module` is the
    nn.Module it belongs to, `path` the modules around it, outermost first. `converts` are conversions before it, `constants`
    computations of constants that it reads; neither has a box of its own. `milliseconds` is its estimated time on the CPU;
    `sqnr` that of its last kernel, bytes are those of all its kernels.
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
    path: tuple[str, ...] = ()
    constant: bool = False
    converts: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    milliseconds: float = 0.0
    sqnr: float | None = None
    weight_bytes: int = 0
    activation_bytes: int = 0

    @property
    def label(self) -> str:
        """The operator without its name space and overload."""
        parts = self.operator.split(".")
        return parts[1] if len(parts) > 1 else self.operator

    @property
    def title(self) -> str:
        """The name for users: its module; without one the name of a LiteRT tensor, or the operator of a PyTorch node."""
        return self.module or (self.name if self.label == self.operator else self.label)


@dataclass(frozen=True)
class Graph:
    """Boxes in the order of the program, and the numbers of conversions and computations of constants without a box."""

    boxes: tuple[Box, ...]
    folded: int = 0
    constants: int = 0


def graph_of(report: Report) -> Graph:
    """Return the boxes of the report's nodes, or of its operators if it comes from a LiteRT file."""
    boxes = _of_nodes(report) if report.nodes else _of_operators(report)
    priced = _price(boxes, report.kernels, _members_by_handle(report) if report.nodes else _members_by_index(report))
    kept, folded, constants = _fold(priced)
    return Graph(tuple(kept), folded, constants)


def _fold(boxes: list[Box]) -> tuple[list[Box], int, int]:
    """Remove conversions on the CPU between two boxes, and what computes constants; return also how many of each.

    Readers of a conversion read its inputs instead; readers of a constant have it in `constants`.
    """
    read = {at for box in boxes for at in box.inputs}
    moved: dict[int, tuple[int, ...]] = {}  # old position → new positions that replace it
    names: dict[int, tuple[str, ...]] = {}  # folded conversion → its name and those folded before it
    made: dict[int, tuple[str, ...]] = {}  # folded constant → its name
    kept: list[Box] = []
    for at, box in enumerate(boxes):
        inputs = tuple(dict.fromkeys(new for old in box.inputs for new in moved[old]))
        before = tuple(name for old in box.inputs for name in names.get(old, ()))
        constants = tuple(dict.fromkeys(name for old in box.inputs for name in made.get(old, ())))
        if box.constant and at in read:
            moved[at], made[at] = (), (box.label,)
        elif box.engine == "cpu" and "quantize" in box.operator.lower() and box.inputs and at in read:
            moved[at], names[at], made[at] = inputs, (*before, box.label), constants
        else:
            moved[at] = (len(kept),)
            kept.append(replace(box, inputs=inputs, converts=before, constants=constants))
    constant = sum(box.constant and at in made for at, box in enumerate(boxes))
    return kept, len(boxes) - len(kept) - constant, constant


def _of_operators(report: Report) -> list[Box]:
    at = {op.index: position for position, op in enumerate(report.operators)}
    return [
        Box(
            op.name,
            op.code,
            _engine(op.converted),
            op.reason,
            op.hint,
            "",
            op.graph,
            _earlier(at, op.inputs, position),
            path=module_path(op.name)[:-1],
        )
        for position, op in enumerate(report.operators)
    ]


def _of_nodes(report: Report) -> list[Box]:
    at = {node.name: position for position, node in enumerate(report.nodes)}
    times = {part.name: part.milliseconds for part in report.whole.cpu}
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
            path=module_path(n.module)[: -1 if "/" in n.module else None],
            constant=n.constant,
            milliseconds=0.0 if n.delegated else times.get(n.name, 0.0),
        )
        for i, n in enumerate(report.nodes)
    ]


def module_path(name: str) -> tuple[str, ...]:
    """Return the parts of a module's path, or of the name of a LiteRT tensor or ONNX node, whose scopes end in slashes.

    Example:
        >>> module_path("layer.0.attention"), module_path("net/block_1/Relu;net/block_1/Conv2D")
        (('layer', '0', 'attention'), ('net', 'block_1', 'Relu'))
    """
    if "/" in name:
        return tuple(part for part in name.split(";")[0].split("/") if part)
    return tuple(name.split(".")) if name else ()


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
            box = replace(
                box, cycles=cycles, kernels=names, shape=mine[-1].output_shape, sqnr=mine[-1].sqnr,
                weight_bytes=sum(kernel.weight_bytes for kernel in mine),
                activation_bytes=sum(kernel.activation_bytes for kernel in mine),
            )  # fmt: skip
        elif at in shared:
            other_box = boxes[shared[at]]
            box = replace(box, shared=other_box.title)
        priced.append(box)
    return priced
