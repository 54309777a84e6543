"""torchao's PT2E flow, step by step: observers in, calibration, conversion."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node
from torch.utils._pytree import tree_map
from torchao.quantization.pt2e.quantizer import Quantizer

from openneutron.executorch.capture.export import Inputs, one_thread
from openneutron.executorch.fx import is_view
from openneutron.executorch.quantize.failed_sample import failed_sample
from openneutron.executorch.quantize.passes.fold_batch_norm import fold_batch_norm
from openneutron.executorch.quantize.quick.convert import quick_convert
from openneutron.executorch.quantize.quick.names import quick_names
from openneutron.executorch.quantize.states import part
from openneutron.executorch.recompile_once import recompile_once


def prepare(
    program: ExportedProgram, quantizer: Quantizer, before: Sequence[Callable[[GraphModule], Any]] = ()
) -> GraphModule:
    """The module with observers, ready to calibrate; `before` are steps on the float module, batch norms folded."""
    from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e

    if changes_what_others_see(program.graph):
        # Observers between a value and its change in place would part the two.
        program = program.run_decompositions({})
    with quick_names(), recompile_once():
        # Guards are a call of a module, which passes of other backends refuse.
        module = program.module(check_guards=False)
        part(module)
        # torchao folds batch norms too, but also into convolutions that something else reads.
        fold_batch_norm(module)
        for step in before:
            step(module)
        return prepare_pt2e(module, quantizer)


def changes_what_others_see(graph: Graph) -> bool:
    """Whether an operator works in place on a value that another one reads too, or on a view."""
    for node in graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if node.op != "call_function" or schema is None or not schema.is_mutable or not node.args:
            continue
        changed = node.args[0]
        if isinstance(changed, Node) and (len(changed.users) > 1 or is_view(changed)):
            return True
    return False


def calibrate(prepared: GraphModule, batches: Sequence[Inputs], *, keep: int = 0) -> list[Any]:
    """Run the calibration data through the observers; returns the first `keep` results, which are the float network's."""
    kept: list[Any] = []
    with torch.no_grad(), one_thread():
        for number, batch in enumerate(batches):
            try:
                result = prepared(*batch)
            except Exception as error:
                raise failed_sample(prepared, batch, number, error) from error
            if len(kept) < keep:
                kept.append(tree_map(_copied, result))  # a result may be a buffer that the next run overwrites
    return kept


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def converted(prepared: GraphModule) -> GraphModule:
    """The calibrated module as a quantized one."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e

    with quick_names(), quick_convert(), recompile_once(), one_answer(prepared):
        return convert_pt2e(prepared)


@contextmanager
def one_answer(prepared: GraphModule) -> Iterator[None]:
    """Ask each observer once: all steps of a recurrent layer share theirs, and each answer is a search in a histogram."""
    observers = [one for one in prepared.modules() if hasattr(one, "calculate_qparams")]
    for observer in observers:
        observer.calculate_qparams = cache(observer.calculate_qparams)  # type: ignore[arg-type]
    try:
        yield
    finally:
        for observer in observers:
            del observer.calculate_qparams


def remove_guards(model: GraphModule) -> GraphModule:
    """Drop the call that checks input shapes: passes of other backends refuse calls of modules."""
    for node in list(model.graph.nodes):
        if node.op == "call_module" and not node.users and str(node.target).startswith("_guards"):
            model.graph.erase_node(node)
    model.recompile()
    return model
