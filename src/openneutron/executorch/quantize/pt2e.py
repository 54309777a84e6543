"""torchao's PT2E flow, step by step: inserting observers, calibration, conversion."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule
from torchao.quantization.pt2e.quantizer import Quantizer

from openneutron.executorch.capture.export import Inputs, one_thread
from openneutron.executorch.capture.functional import functional
from openneutron.executorch.quantize.check.calibration import CalibrationWatch
from openneutron.executorch.quantize.check.keep_float import forget_float
from openneutron.executorch.quantize.check.rewrites import RewriteCheck
from openneutron.executorch.quantize.failed_sample import failed_sample
from openneutron.executorch.quantize.headroom import widen_states
from openneutron.executorch.quantize.passes.decompose.decompose_batch_statistics import decompose_batch_statistics
from openneutron.executorch.quantize.passes.fold_batch_norm import fold_batch_norm
from openneutron.executorch.quantize.passes.separate_ranges import describe_mixed
from openneutron.executorch.quantize.read_ranges import fit_ranges
from openneutron.executorch.quantize.states import separate_buffers
from openneutron.executorch.upstream.convert_faster import convert_faster
from openneutron.executorch.upstream.find_names import find_names
from openneutron.executorch.upstream.recompile_once import recompile_once


@dataclass
class Findings:
    """Results of the rewrite check: parts that stay as written, and places where the model gives NaN."""

    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def prepare(
    program: ExportedProgram,
    quantizer: Quantizer,
    before: Sequence[Callable[[GraphModule], Any]] = (),
    *,
    samples: Sequence[Inputs] = (),
    found: Findings | None = None,
) -> GraphModule:
    """Return the module with observers, ready to calibrate, with batch norms folded; `before` are steps on the float module.

    With `samples`, every rewrite of the float graph is checked on them; the results are added to `found`.
    """
    from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e

    program = functional(program)
    with find_names(), recompile_once():
        # Guards are a module call, which passes of other backends refuse.
        module = program.module(check_guards=False)
        separate_buffers(module)
        decompose_batch_statistics(module)
        # torchao folds batch norms too, but also into convolutions that have other readers.
        check = RewriteCheck(module, samples)
        checks = [check]
        check.run([fold_batch_norm])
        if before:
            check.settle()  # these steps change weights on purpose
            forget_float(module)  # masks of minus infinity are not rewritten yet; the next check looks again
            for step in before:
                step(module)
            checks.append(RewriteCheck(module, samples))
        else:
            module.recompile()
        for one in getattr(quantizer, "quantizers", [quantizer]):
            if samples and hasattr(one, "check"):
                one.check = checks[-1]
        prepared = prepare_pt2e(module, quantizer)
        if found is not None:
            found.notes += [note for one in checks for note in one.notes] + describe_mixed(prepared)
            found.warnings += [warning for one in checks for warning in one.warnings]
        return prepared


def calibrate(
    prepared: GraphModule, batches: Sequence[Inputs], *, found: Findings | None = None, state_headroom: float = 1.0,
    fit: bool = False,
) -> None:  # fmt: skip
    """Run the calibration data through the observers; what the samples leave open is added to `found`.

    Ranges of states are `state_headroom` times those seen; with `fit`, others suit their readers.
    """
    watch = CalibrationWatch(prepared, batches) if found is not None else None
    with torch.no_grad(), one_thread():
        for number, batch in enumerate(batches):
            try:
                prepared(*(value.clone() for value in batch))  # a model may change its inputs in place
            except Exception as error:
                raise failed_sample(prepared, batch, number, error) from error
            if watch is not None:
                watch.after_sample()
    if found is not None and watch is not None:
        found.notes += watch.notes()
        if state_headroom == 1:
            found.warnings += watch.warnings()
    if fit:
        fit_ranges(prepared)
    if state_headroom != 1:
        widen_states(prepared, state_headroom)


def convert(prepared: GraphModule) -> GraphModule:
    """Convert the calibrated module to a quantized one."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e

    with find_names(), convert_faster(), recompile_once(), cache_parameters(prepared):
        return convert_pt2e(prepared)


@contextmanager
def cache_parameters(prepared: GraphModule) -> Iterator[None]:
    """Compute each observer's parameters once: all steps of a recurrent layer share it, and each query searches a histogram."""
    observers = [one for one in prepared.modules() if hasattr(one, "calculate_qparams")]
    for observer in observers:
        observer.calculate_qparams = cache(observer.calculate_qparams)  # type: ignore[arg-type]
    try:
        yield
    finally:
        for observer in observers:
            del observer.calculate_qparams


def remove_guards(model: GraphModule) -> GraphModule:
    """Remove the module call that checks input shapes: passes of other backends refuse it."""
    for node in list(model.graph.nodes):
        if node.op == "call_module" and not node.users and str(node.target).startswith("_guards"):
            model.graph.erase_node(node)
    model.recompile()
    return model
