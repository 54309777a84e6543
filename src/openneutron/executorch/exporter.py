"""ExecuTorch's exporter, imported without two things that are a third of its time and that no compile needs.

Example:
    >>> load_exporter()  # before the first import of anything that imports executorch.exir
    >>> from openneutron.executorch.pipeline import compile_module
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from torch.export import ExportedProgram

_REMOVE: Final = "torch.export._remove_auto_functionalized_pass"


def load_exporter() -> None:
    """Import executorch.exir, unless someone has."""
    import executorch  # noqa: F401  says that it is missing before anything it brings is

    if "executorch.exir" not in sys.modules:
        with read_by_libyaml(), _without_inductor():
            import_module("executorch.exir")


@contextmanager
def read_by_libyaml() -> Iterator[None]:
    """ruamel.yaml, which takes 0.7 s in Python for the types of all operators, leaves its input to PyYAML's C code."""
    yaml, reader = import_module("yaml"), import_module("ruamel.yaml").YAML
    if not hasattr(yaml, "CSafeLoader"):  # built without libyaml
        yield
        return
    before = reader.load
    reader.load = lambda self, text: yaml.load(text, yaml.CSafeLoader)
    try:
        yield
    finally:
        reader.load = before


@contextmanager
def _without_inductor() -> Iterator[None]:
    """torch's pass that undoes `auto_functionalized` brings the whole Inductor along: it is imported when it has work."""
    if _REMOVE in sys.modules:
        yield
        return
    ours: Any = ModuleType(_REMOVE)
    ours.unsafe_remove_auto_functionalized_pass = remove_functionalized
    sys.modules[_REMOVE] = ours
    try:
        yield
    finally:
        del sys.modules[_REMOVE]  # everybody else gets torch's own


def remove_functionalized(program: ExportedProgram) -> ExportedProgram:
    """What torch's pass of `_REMOVE` does, which is little in a program without `auto_functionalized`."""
    import torch
    from torch._higher_order_ops.auto_functionalize import auto_functionalized, auto_functionalized_v2

    modules = [module for module in program.graph_module.modules() if isinstance(module, torch.fx.GraphModule)]
    wrapped = (auto_functionalized, auto_functionalized_v2)
    if any(node.target in wrapped for module in modules for node in module.graph.nodes):
        whole: ExportedProgram = import_module(_REMOVE).unsafe_remove_auto_functionalized_pass(program)
        return whole
    graph = program.graph
    with program.graph_module._set_replace_hook(program.graph_signature.get_replace_hook()):
        for node in graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default):
            if node.args[0] == node.args[1]:
                node.replace_all_uses_with(node.args[0])
                graph.erase_node(node)
        graph.eliminate_dead_code()
    return program
