"""InlineScopes: inlines submodules of `torch.no_grad()` and of a disabled autocast into the graph.

Before:  y = wrap_with_set_grad_enabled(False, submodule, x)[0]
After:   y = relu(x)
"""

from __future__ import annotations

import operator
from typing import Final

from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import copy_graph, operator_name
from openneutron.executorch.upstream.names import with_graph

_SCOPES: Final = {
    "wrap_with_set_grad_enabled": 1,
    "wrap_with_autocast": 4,
}  # → its submodule's argument
_ENABLED: Final = 2  # wrap_with_autocast's argument that enables it


def inline_scopes(program: ExportedProgram) -> ExportedProgram:
    """Return a program without scope calls; the same program if it has none.

    An enabled autocast stays: it computes in other types.
    """
    if not any(map(_is_scope, program.graph.nodes)):
        return program
    return with_graph(program, _inline_all(program.graph_module), program.graph_signature)


def _inline_all(given: GraphModule) -> GraphModule:
    module = GraphModule(given, copy_graph(given.graph))
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
    """Insert the operators of a scope in front of its call, and replace the call's results by theirs."""
    at = _SCOPES[operator_name(node)]
    holder, *given = node.args[at:]
    assert isinstance(holder, Node)
    body = _inline_all(module.get_submodule(str(holder.target))).graph  # type: ignore[arg-type]
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
