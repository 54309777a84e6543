"""Write graphs out as Python once, when a pass manager is done with them, and not after each of its passes.

Replaces: `torch.fx.GraphModule.recompile`, which writes and compiles the source of a module's `forward` whenever a pass
asks for it. torchao's conversion asks five times and runs none of the five, and ExecuTorch asks for every partition.
Saves: see `python benchmarks/upstream.py`.
Knows: torch 2.13.
Otherwise: torch recompiles each time.

Example:
    >>> with recompile_once():
    ...     convert_pt2e(prepared)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from torch.fx import GraphModule

from openneutron.executorch.upstream.switch import Expected, replaces


@replaces("torch", Expected("torch.fx", "GraphModule.recompile", ("self",)))
def recompile_once() -> Iterator[None]:
    """Delay every recompile until the module is run, or to the end.

    A module whose graph another one has taken over is not the result of any pass, so it waits until it is run.
    """
    waiting: dict[int, GraphModule] = {}
    compiled = GraphModule.recompile

    def delay(module: GraphModule) -> None:
        if type(module).recompile is not delay:
            compiled(module)  # a class with its own recompile
            return
        waiting[id(module)] = module
        vars(module).setdefault("_code", "")  # printing a module reads it

        def run(module: GraphModule, *args: Any, **kwargs: Any) -> Any:
            waiting.pop(id(module), None)
            compiled(module)
            return module.forward(*args, **kwargs)

        type(module).forward = run  # type: ignore[method-assign]

    with patch.object(GraphModule, "recompile", delay):
        yield
    for module in waiting.values():
        if module.graph.owning_module is module:
            module.recompile()
