"""InlineScopes: what stands under `torch.no_grad()` or a switched-off autocast is part of the graph as anything else.

Before:  y = wrap_with_set_grad_enabled(False, submodule, x)[0]
After:   y = relu(x)
"""

from __future__ import annotations

import operator
from typing import Final

from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import copied, operator_name

_SCOPES: Final = {"wrap_with_set_grad_enabled": 1, "wrap_with_autocast": 4}  # → which argument is the submodule
_ENABLED: Final = 2  # which of wrap_with_autocast's says whether types change


def inline_scopes(program: ExportedProgram) -> ExportedProgram:
    """A program without such calls; the given one, when it has none.

    An autocast that is on stays: it computes in other types.
    """
    if not any(map(_is_scope, program.graph.nodes)):
        return program
    return program._update(_inlined(program.graph_module), program.graph_signature)


def _inlined(given: GraphModule) -> GraphModule:
    module = GraphModule(given, copied(given.graph))
    for node in list(module.graph.nodes):
        if _is_scope(node):
            _inline(module, node)
    module.delete_all_unused_submodules()
    module.recompile()
    return module


def _is_scope(node: Node) -> bool:
    name = operator_name(node)
    return name in _SCOPES and not (name == "wrap_with_autocast" and node.args[_ENABLED])


def _inline(module: GraphModule, node: Node) -> None:
    """Put the operators of a scope in front of its call, and its results in place of what the call gives."""
    at = _SCOPES[operator_name(node)]
    holder, *given = node.args[at:]
    assert isinstance(holder, Node)
    body = _inlined(module.get_submodule(str(holder.target))).graph  # type: ignore[arg-type]
    made = dict(zip((one for one in body.nodes if one.op == "placeholder"), given, strict=True))
    with module.graph.inserting_before(node):
        results = module.graph.graph_copy(body, made)  # type: ignore[arg-type]
    for user in list(node.users):
        assert user.target is operator.getitem
        user.replace_all_uses_with(results[user.args[1]])  # type: ignore[index,arg-type]
        module.graph.erase_node(user)
    module.graph.erase_node(node)
    if not holder.users:
        module.graph.erase_node(holder)
