"""AbsorbTransposes: removes transposes between a delegate and Cortex-M operators: the delegate then exchanges NHWC tensors.

Before:  d = delegate(...), which turns its result to NCHW; t = transpose(d, [0, 2, 3, 1]); y = avg_pool2d_nhwc(t)
After:   t = delegate(...), a result of shape NHWC, without a transpose; y = avg_pool2d_nhwc(t)

Two copies less on either side of the delegate. The program calls the delegate's original module when it is traced again,
so that one gets the transpose instead.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import torch
from executorch.exir.delegate import executorch_call_delegate
from torch.export import ExportedProgram
from torch.fx import Node

from openneutron.executorch.deliver.backend import Partition
from openneutron.executorch.fx import GETITEM, operator_name, value_of
from openneutron.executorch.upstream.edge_names import DELEGATE_INFO, edge_operator, info_of, replace_payload
from openneutron.microcode.payload import without_formats

_TRANSPOSE: Final = "cortex_m.transpose.default"
_CLONE: Final = "dim_order_ops._clone_dim_order.default"
TO_NHWC, TO_NCHW = [0, 2, 3, 1], [0, 3, 1, 2]


def absorb_transposes(program: ExportedProgram) -> int:
    """Edit the program in place; returns how many tensors now cross a border without being turned.

    Example:
        >>> absorb_transposes(run_cortex_m_passes(edge.exported_program(), "cortex-m33"))
        2
    """
    module, count = program.graph_module, 0
    for call in [node for node in program.graph.nodes if node.target is executorch_call_delegate]:
        lowered: Any = getattr(module, call.args[0].target)
        partition = info_of(lowered)
        if isinstance(partition, Partition):
            count += _absorb(call, lowered, partition)
    if count:
        for node in reversed(program.graph.nodes):
            if operator_name(node) in (_TRANSPOSE, _CLONE) and not node.users:
                program.graph.erase_node(node)
        module.recompile()
    return count


def _absorb(call: Node, lowered: Any, partition: Partition) -> int:
    turned = dict(zip(partition.input_map, partition.input_formats, strict=True))
    inputs = {
        place
        for place, source in enumerate(call.args[1:])
        if turned.get(place) and isinstance(source, Node) and _is_transpose(source, TO_NCHW)
    }
    outputs = {user.args[1] for user in call.users if operator_name(user) == GETITEM and _read_in_nhwc(user)}
    outputs = {index for index in outputs if isinstance(index, int) and partition.output_formats[index]}
    if not inputs and not outputs:
        return 0
    replace_payload(lowered, without_formats(lowered.processed_bytes, inputs, outputs))
    lowered.meta[DELEGATE_INFO] = dataclasses.replace(
        partition,
        input_formats=tuple(
            0 if place in inputs else last
            for place, last in zip(partition.input_map, partition.input_formats, strict=True)
        ),
        output_formats=tuple(
            0 if index in outputs else last for index, last in enumerate(partition.output_formats)
        ),
    )  # fmt: skip
    _turn_inside(lowered.original_module, inputs, outputs)
    for place in inputs:
        source = call.args[1 + place].args[0]  # type: ignore[union-attr]
        call.update_arg(1 + place, source)
    values = list(value_of(call))
    for user in list(call.users):
        if operator_name(user) == GETITEM and user.args[1] in outputs:
            values[user.args[1]] = user.meta["val"] = value_of(user).permute(TO_NHWC).contiguous()  # type: ignore[index]
            for transpose in _transposes(user):
                transpose.replace_all_uses_with(user)
    call.meta["val"] = type(value_of(call))(values)
    return len(inputs) + len(outputs)


def _turn_inside(program: ExportedProgram, inputs: set[int], outputs: set[int]) -> None:
    """Insert transposes in the delegate's original module, so that it takes and returns NHWC where the delegate does."""

    graph, permute = program.graph, edge_operator(torch.ops.aten.permute_copy.default)
    user = set(program.graph_signature.user_inputs)
    arguments = [node for node in graph.nodes if node.op == "placeholder" and node.name in user]
    for place in inputs:
        given = arguments[place]
        value, readers = value_of(given), list(given.users)
        with graph.inserting_after(given):
            # Contiguous, as the transpose that it stands for: in another order the results would come out in another.
            made = graph.call_function(permute, (given, TO_NCHW))
        made.meta = {**given.meta, "val": value.contiguous()}
        for reader in readers:
            reader.replace_input_with(given, made)
        given.meta["val"] = value.permute(TO_NHWC).contiguous()
    output = graph.output_node()
    results = list(output.args[0])  # type: ignore[arg-type]
    for index in outputs:
        with graph.inserting_before(output):
            made = graph.call_function(permute, (results[index], TO_NHWC))
        made.meta = {**results[index].meta, "val": value_of(results[index]).permute(TO_NHWC).contiguous()}
        program.graph_signature.output_specs[index].arg.name = made.name
        results[index] = made
    output.args = (tuple(results),)
    program.graph_module.recompile()


def _read_in_nhwc(result: Node) -> bool:
    """Whether transposes to NHWC are all that reads a delegate's result, directly or behind dim-order copies."""
    if value_of(result).dim() != 4 or not result.users:
        return False
    return all(
        _is_transpose(user, TO_NHWC)
        or (operator_name(user) == _CLONE and bool(user.users) and all(_is_transpose(u, TO_NHWC) for u in user.users))
        for user in result.users
    )


def _transposes(result: Node) -> list[Node]:
    readers = [*result.users, *(reader for user in result.users for reader in user.users)]
    return [reader for reader in readers if _is_transpose(reader, TO_NHWC)]


def _is_transpose(node: Node, order: list[int]) -> bool:
    """Whether a node is that transpose, and not an output of the program, whose name is part of its signature."""
    if operator_name(node) != _TRANSPOSE or list(node.args[1]) != order:  # type: ignore[arg-type]
        return False
    return all(user.op != "output" for user in node.users)
