"""The drawing of an ExecuTorch program: its instructions, with delegates opened.

Example:
    >>> draw_plan(read_calls(data, where="model.pte")).id
    'instructions'
"""

from __future__ import annotations

import math

from openneutron.explore.drawing import CPU, NPU, Drawing, Edge, Node, Overlay
from openneutron.explore.litert import neutron_graph_id
from openneutron.litert.graph import DType
from openneutron.microcode.payload import BACKEND_ID
from openneutron.microcode.pte import PlanCalls, PlanValue

NAME = "instructions"
_ITEM_BYTES = {dtype.value: dtype.itemsize for dtype in DType}


def draw_plan(plan: PlanCalls) -> Drawing:
    """Return the drawing; a Neutron delegate refers to the drawing of its NeutronGraph.

    What an instruction names for the first time, and is neither an input nor a constant, is its result; so is the last tensor
    of an operator, which ExecuTorch's kernels take as the place for their result.
    """
    source = {value: (f"input {at}", 0) for at, value in enumerate(plan.inputs)}
    nodes = [
        Node(f"input {at}", f"input {at}", outputs=(_describe(plan.values[value]),))
        for at, value in enumerate(plan.inputs)
    ]
    engines: dict[str, float | str] = {}
    sizes: dict[str, float] = {}
    neutron: dict[int, int] = {}  # delegate → its number among Neutron's
    for at, call in enumerate(plan.calls):
        made = [one for one in dict.fromkeys(call.values) if one not in source and not plan.values[one].constant]
        if not made and call.delegate < 0 and call.values:
            made = [call.values[-1]]
        read = [one for one in dict.fromkeys(call.values) if one not in made]
        on_npu = call.delegate >= 0 and call.name == BACKEND_ID
        if on_npu:
            neutron.setdefault(call.delegate, len(neutron))
        name = f"call {at}"
        attributes = {
            f"constant {position}": _line(plan.values[one]) for position, one in enumerate(read) if one not in source
        }
        edges = tuple(Edge(*source[one], input=position) for position, one in enumerate(read) if one in source)
        opened = (neutron_graph_id(neutron[call.delegate]),) if on_npu else ()
        label = call.name.partition("::")[2] or call.name
        space = call.name.partition("::")[0] if "::" in call.name else ""
        attributes |= {"namespace": space} if space else {}
        outputs = tuple(_describe(plan.values[one]) for one in made)
        nodes.append(Node(name, label, "", attributes, edges, outputs, opened))
        engines[name], sizes[name] = NPU if on_npu else CPU, float(sum(map(_bytes, (plan.values[one] for one in made))))
        source.update({one: (name, position) for position, one in enumerate(made)})
    for at, value in enumerate(plan.outputs):
        edges = (Edge(*source[value]),) if value in source else ()
        nodes.append(Node(f"output {at}", f"output {at}", attributes=_describe(plan.values[value]), edges=edges))
    facts = {"instructions": f"{len(plan.calls):,}"}
    overlays = (Overlay("engine", "engine", engines), Overlay("output bytes", "cost", sizes))
    return Drawing(NAME, tuple(nodes), facts, overlays)


def _describe(value: PlanValue) -> dict[str, str]:
    found = {"tensor_shape": "×".join(map(str, value.tensor.shape)), "type": value.tensor.dtype or "no tensor"}
    if value.tensor.channels_last:
        found["order"] = "channels last"
    if value.offset >= 0:
        found["address"] = f"arena {value.arena}+{value.offset}"
    return found


def _line(value: PlanValue) -> str:
    return ", ".join(_describe(value).values())


def _bytes(value: PlanValue) -> int:
    return math.prod(value.tensor.shape) * _ITEM_BYTES.get(value.tensor.dtype, 0)
