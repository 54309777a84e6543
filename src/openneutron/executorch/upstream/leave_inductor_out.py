"""Import and write programs without torch's Inductor.

Replaces: `torch.export._remove_auto_functionalized_pass`, which imports Inductor to undo `auto_functionalized`, an
operator that programs for ExecuTorch rarely contain. While executorch.exir is imported, a module stands in its place
that imports torch's own at the first use. While we write a program, a function of ours stands in the place of torch's
pass.
Saves: importing Inductor (`python benchmarks/upstream.py --imports`).
Knows: torch 2.13, ExecuTorch 1.5.
Otherwise: torch's own module and pass.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, Final
from unittest.mock import patch

import torch
from torch.export import ExportedProgram

from openneutron.executorch.upstream.switch import Expected, Present, replaces

_MODULE: Final = "torch.export._remove_auto_functionalized_pass"
_PASS: Final = "unsafe_remove_auto_functionalized_pass"
_OPERATORS: Final = "torch._higher_order_ops.auto_functionalize"


@replaces("torch", Present(_MODULE))
def leave_inductor_out() -> Iterator[None]:
    """Let the module be imported at its first use; importers from inside keep a function that does that."""
    if _MODULE in sys.modules:
        yield
        return
    stand_in: Any = ModuleType(_MODULE)
    setattr(stand_in, _PASS, lambda program: getattr(import_module(_MODULE), _PASS)(program))
    sys.modules[_MODULE] = stand_in
    try:
        yield
    finally:
        del sys.modules[_MODULE]  # the next import is of torch's own


@replaces(
    "torch",
    Expected(_OPERATORS, "auto_functionalized"),
    Expected(_OPERATORS, "auto_functionalized_v2"),
    Expected("torch.fx", "GraphModule._set_replace_hook", ("self", "f")),
    Expected("executorch.exir.program._program", _PASS),
)
def write_without_inductor() -> Iterator[None]:
    """Let ExecuTorch's writer call `remove_functionalized` in the place of torch's pass."""
    with patch(f"executorch.exir.program._program.{_PASS}", remove_functionalized):
        yield


def remove_functionalized(program: ExportedProgram) -> ExportedProgram:
    """Do what torch's pass does, which is little in a program without `auto_functionalized`; leave others to torch."""
    operators = import_module(_OPERATORS)
    modules = [module for module in program.graph_module.modules() if isinstance(module, torch.fx.GraphModule)]
    wrapped = (operators.auto_functionalized, operators.auto_functionalized_v2)
    if any(node.target in wrapped for module in modules for node in module.graph.nodes):
        whole: ExportedProgram = getattr(import_module(_MODULE), _PASS)(program)
        return whole
    graph = program.graph
    with program.graph_module._set_replace_hook(program.graph_signature.get_replace_hook()):
        for node in graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default):
            if node.args[0] == node.args[1]:
                node.replace_all_uses_with(node.args[0])
                graph.erase_node(node)
        graph.eliminate_dead_code()
    return program
