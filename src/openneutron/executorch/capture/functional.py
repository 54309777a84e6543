"""Functional: makes in-place changes explicit, so that the new value of a buffer is a result of its own.

Before:  mul_(buffer, 0.9); add_(mul_, x); y = sub(x, add_)
After:   mul(buffer, 0.9); add(mul, x); y = sub(x, add); buffer ← add

Observers are inserted between an operator and its readers. After an observer, an in-place change would no longer reach the
buffer, which would keep its old value.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind, TensorArgument
from torch.fx import Node

from openneutron.errors import UnsupportedError
from openneutron.executorch.fx import arguments, is_view, operator_name, source_line
from openneutron.executorch.upstream.names import OpOverload, has_composite_kernel, schema_of

# Their schemas declare no changes, but in training they update running statistics: the argument that says so.
_UPDATES_STATISTICS = {"aten.batch_norm.default": "training", "aten.instance_norm.default": "use_input_stats"}
# Composite operators may return their argument itself (dropout in evaluation, `contiguous`); these always compute.
_LAYERS = ("aten.conv", "aten.linear.", "aten.batch_norm.", "aten.layer_norm.", "aten.group_norm.", "aten.matmul.")
_HANDS_ON = ("aten.dropout.default", "aten.feature_dropout.default", "aten.alpha_dropout.default")
_STATISTICS = ("running_mean", "running_var")


def functional(program: ExportedProgram) -> ExportedProgram:
    """Return a program without in-place changes; the same program if it makes none that a buffer or another reader would see.

    Example:
        >>> functional(torch.export.export(model, (frame,))).graph_signature.buffers_to_mutate
        {'add': 'average'}
    """
    if not changes_what_others_see(program):
        return program
    for change in _seen_changes(program):
        if operator_name(change[1]) in _HANDS_ON and not arguments(change[1])["train"]:
            raise _refusal(program, change, "dropout is its own argument in evaluation, and torch forgets that")
        if operator_name(change[0]).startswith("aten._foreach_"):
            raise _refusal(program, change, "an operator on a list of tensors; write one operator for each buffer")
    try:
        with torch.no_grad():
            made = program.run_decompositions({})
    except Exception as error:
        message = (str(error).strip().splitlines() or ["no message"])[0].rstrip(".")
        raise _refusal(program, next(_seen_changes(program)), f"{type(error).__name__}: {message}") from error
    left = next(_seen_changes(made), None)
    if left is not None:
        raise _refusal(made, left, "torch leaves the change in place")
    for name in sorted(set(made.graph_signature.buffers_to_mutate.values())):
        shared = _shares_memory(made, name)
        if shared is not None:
            raise shared
    _copy_states_handed_over(made)
    _join_reshapes(made)
    return made


def _join_reshapes(program: ExportedProgram) -> None:
    """Write a copy and a view of it as the one reshape that they come from, which needs no retrace."""
    aten, graph = torch.ops.aten, program.graph
    for view in graph.find_nodes(op="call_function", target=aten._unsafe_view.default):
        copy = view.args[0]
        if isinstance(copy, Node) and copy.target is aten.clone.default and len(copy.users) == 1:
            view.target, view.args = aten.reshape.default, (copy.args[0], view.args[1])
            graph.erase_node(copy)
    program.graph_module.recompile()


def _copy_states_handed_over(program: ExportedProgram) -> None:
    """Copy a buffer or parameter that becomes the new value of a state: no operator makes it, so the write would be lost."""
    output, signature = program.graph.output_node(), program.graph_signature
    stored = {
        **signature.inputs_to_buffers,
        **signature.inputs_to_parameters,
        **signature.inputs_to_lifted_tensor_constants,
    }
    results = list(output.args[0])
    for at, (spec, node) in enumerate(zip(signature.output_specs, results, strict=True)):
        handed_over = isinstance(node, Node) and node.name in stored
        if spec.kind != OutputKind.BUFFER_MUTATION or not handed_over:
            continue
        with program.graph.inserting_before(output):
            results[at] = program.graph.call_function(torch.ops.aten.clone.default, (node,))
        results[at].meta = dict(node.meta)
        spec.arg = TensorArgument(name=results[at].name)
    output.args = (tuple(results),)
    program.graph_module.recompile()


def _shares_memory(program: ExportedProgram, buffer: str) -> UnsupportedError | None:
    """Return the error for a changed buffer that shares its memory with others: the program stores each separately."""
    tensors = {**dict(program.named_parameters()), **dict(program.named_buffers())}
    memory = tensors[buffer].untyped_storage().data_ptr()
    others = [
        name
        for name, value in tensors.items()
        if name != buffer and value.numel() and value.untyped_storage().data_ptr() == memory
    ]
    if not others:
        return None
    return UnsupportedError(
        f"buffer {buffer} is changed by forward and shares its memory with {', '.join(others)}, which would not change",
        hint="register one buffer, and take views of it in forward",
    )


def changes_what_others_see(program: ExportedProgram) -> bool:
    """Return whether an operator changes a buffer, a view, or a value with other readers.

    An input without other readers may be overwritten.
    """
    return next(_seen_changes(program), None) is not None


def written_by(node: Node) -> list[Node]:
    """Return the arguments that a call writes to, wherever its schema has them: `self`, `out`, lists of tensors.

    Example:
        >>> written_by(node)  # add.out(a, b, out=buffer)
        [buffer]
    """
    schema = schema_of(node.target)
    if node.op != "call_function" or schema is None:
        return []
    given = arguments(node)
    names = [one.name for one in schema.arguments if one.alias_info is not None and one.alias_info.is_write]
    flag = _UPDATES_STATISTICS.get(operator_name(node))
    if flag is not None and given[flag]:
        names += _STATISTICS
    values = [given[name] for name in names]
    flat = [one for value in values for one in (value if isinstance(value, (tuple, list)) else (value,))]
    return [one for one in flat if isinstance(one, Node)]


def _seen_changes(program: ExportedProgram) -> Iterator[tuple[Node, Node]]:
    """Yield each in-place call whose change others see, with the value that it changes."""
    inputs = set(program.graph_signature.user_inputs)
    for node in program.graph.nodes:
        for changed in written_by(node):
            root = changed  # first value of a chain of changes, each read only by the next
            while len(root.users) == 1 and written_by(root):
                root = written_by(root)[0]
            if len(root.users) > 1 or not (root.name in inputs or _is_fresh(root)):
                yield node, changed


def _is_fresh(node: Node) -> bool:
    """Return whether a value certainly has memory of its own: the result of a kernel or layer that returns no view."""
    if node.op != "call_function" or is_view(node) or written_by(node) or not isinstance(node.target, OpOverload):
        return False  # getitem too: the pieces of a chunk are views of the whole
    return not has_composite_kernel(node.target) or operator_name(node).startswith(_LAYERS)


def _refusal(program: ExportedProgram, change: tuple[Node, Node], why: str) -> UnsupportedError:
    node, changed = change
    while changed.op == "call_function" and changed.all_input_nodes:
        changed = (written_by(changed) or changed.all_input_nodes)[0]
    signature = program.graph_signature
    what = f"value {changed.name}"
    if changed.name in signature.inputs_to_buffers:
        name = signature.inputs_to_buffers[changed.name]
        shared = _shares_memory(program, name)
        if shared is not None:
            return shared
        what = f"buffer {name}"
    elif changed.name in signature.inputs_to_lifted_tensor_constants:
        what, why = "a tensor that is no buffer", "register it with register_buffer, under one name"
    line = source_line(node)
    return UnsupportedError(
        f"{operator_name(node)} ({node.name}{', ' + line if line else ''}) changes {what} in place, which cannot be "
        f"compiled: {why}",
        hint="compute the new value and write it once, at the end of forward: self.state.copy_(new)",
    )
