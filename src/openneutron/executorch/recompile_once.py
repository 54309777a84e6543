"""Recompile once: graphs are written out as Python when a pass manager is done with them, not after each of its passes.

torch.fx writes and compiles the source of a module's `forward` whenever a pass asks for it. torchao's conversion asks five
times and runs none of the five, which for the steps of a recurrent layer was half of its time.

Example:
    >>> with recompile_once():
    ...     convert_pt2e(prepared)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from torch.fx import GraphModule


@contextmanager
def recompile_once() -> Iterator[None]:
    """Put off every recompile until the module is run, or to the end.

    A module whose graph another one has taken over is not the result of any pass: it waits until it is run.
    """
    waiting: dict[int, GraphModule] = {}
    compiled = GraphModule.recompile

    def put_off(module: GraphModule) -> None:
        if type(module).recompile is not put_off:
            compiled(module)  # a class with another way
            return
        waiting[id(module)] = module
        vars(module).setdefault("_code", "")  # who prints a module, if only for a log, wants some

        def run(module: GraphModule, *args: Any, **kwargs: Any) -> Any:
            waiting.pop(id(module), None)
            compiled(module)
            return module.forward(*args, **kwargs)

        type(module).forward = run  # type: ignore[method-assign]

    with patch.object(GraphModule, "recompile", put_off):
        yield
    for module in waiting.values():
        if module.graph.owning_module is module:
            module.recompile()
