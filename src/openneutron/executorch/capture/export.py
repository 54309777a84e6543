"""Export of a module to a quantized ATen program; every failure is reported as one sentence."""

from __future__ import annotations

import dataclasses
import sys
import traceback
import warnings
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import torch
import torch.fx.traceback
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument
from torch.fx import Node
from torch.nn.utils.rnn import PackedSequence

import openneutron
from openneutron.errors import OpenNeutronError, UnsupportedError
from openneutron.executorch.capture.inline_scopes import inline_scopes
from openneutron.executorch.fx import is_quantize, is_static, operator_name, value_of
from openneutron.executorch.upstream.names import TreeSpec, with_calls
from openneutron.executorch.upstream.trace_one_step import trace_one_step
from openneutron.executorch.ways_out import way_out
from openneutron.terminal.quiet import without_logs

_DECIDED_BY_DATA = "GuardOnDataDependentSymNode"  # of torch.fx.experimental.symbolic_shapes
Inputs = tuple[torch.Tensor, ...]
# torch warns of its own recurrent layers, which list their weights a second time; warnings about other attributes pass.
_WEIGHTS_OF_RECURRENT_LAYERS = r"The tensor attributes? (self[.\w]*\._flat_weights\[\d+\](, )?)+ (was|were) assigned"
_STORED = (tuple, list, dict, OrderedDict)  # results that a `.pte` can describe


def export(model: torch.nn.Module, inputs: Inputs, *, what: str = "the model") -> ExportedProgram:
    """Run `torch.export`; a model that cannot be exported is reported in one sentence instead of a traceback."""
    printed = StringIO()  # torch prints the graph so far, beside its exception
    try:
        with (
            torch.fx.traceback.preserve_node_meta(getattr(model, "notes_nodes", False)),
            trace_one_step(),
            without_logs(),
            redirect_stderr(printed),
            warnings.catch_warnings(),
        ):
            warnings.filterwarnings("ignore", message=_WEIGHTS_OF_RECURRENT_LAYERS)
            made = inline_scopes(with_plain_outputs(torch.export.export(model, inputs)))
        sys.stderr.write(printed.getvalue())  # what the model's own code says
        return made
    except OpenNeutronError:
        raise
    except Exception as error:
        if _has_packed_sequence(error):
            raise UnsupportedError(
                f"{what} packs sequences: their sizes depend on data, and programs have fixed shapes",
                hint="give the recurrent layer padded sequences of one length, and mask its results behind them",
            ) from error
        place = _place(error)
        if type(error).__name__ == _DECIDED_BY_DATA:
            raise UnsupportedError(
                f"{what} decides by the value of a tensor{place}: an if, a loop, int() or a size, and programs are fixed",
                hint="choose with torch.where, which computes both sides, and give loops and sizes fixed numbers",
            ) from error
        first = str(error).strip().splitlines()
        told = first[0] if first else "no message"
        raise UnsupportedError(
            f"torch.export cannot capture {what}{place}: {type(error).__name__}: {told}",
            hint="run torch.export.export(model, example_inputs) alone to see the whole error",
        ) from error


def _place(error: BaseException) -> str:
    """Return the line of the user's code that an error comes from, as " (file.py:12)"; "" if none is known."""
    apart = (Path(torch.__file__).parent, Path(openneutron.__file__).parent)
    frames = [
        (Path(frame.f_code.co_filename), line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not any(one in Path(frame.f_code.co_filename).parents for one in apart) and frame.f_code.co_name == "forward"
    ]
    return f" ({frames[-1][0].name}:{frames[-1][1]})" if frames else ""


def _has_packed_sequence(error: BaseException) -> bool:
    """Whether a packed sequence was at hand where the error comes from."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return any(isinstance(value, PackedSequence) for frame in frames for value in frame.f_locals.values())


def with_plain_outputs(program: ExportedProgram) -> ExportedProgram:
    """Return the program with named results (a named tuple, or those of `torch.max(x, 1)`) as plain tuples: a `.pte` stores
    tuples, lists and dictionaries.
    """
    entry = program.module_call_graph[0]
    if entry.signature is None or (plain := _plain(entry.signature.out_spec)) == entry.signature.out_spec:
        return program
    signature = dataclasses.replace(entry.signature, out_spec=plain)
    # A copy: the caller's own keeps its names.
    return with_calls(program, [dataclasses.replace(entry, signature=signature), *program.module_call_graph[1:]])


def _plain(spec: TreeSpec) -> TreeSpec:
    if spec.is_leaf():
        return spec
    children = [_plain(child) for child in spec.children()]
    if spec.type in _STORED:
        return spec if children == spec.children() else TreeSpec(spec.type, spec.context, children)
    return TreeSpec(tuple, None, children)


@contextmanager
def evaluation(model: torch.nn.Module) -> Iterator[None]:
    """Put the model in evaluation mode; afterwards every submodule has its previous mode."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch to one thread: the histogram observer's sums, and so the scales, depend on the number of threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def check_program(program: ExportedProgram, *, from_module: bool) -> None:
    """Refuse what no later stage can compile: dynamic shapes, inputs that are no tensors, strings, a program left in float.

    `from_module` says that this package quantized it.
    """
    check_shapes(program)
    for spec in program.graph_signature.output_specs:
        if isinstance(spec.arg, ConstantArgument) and isinstance(spec.arg.value, str):
            raise UnsupportedError(f"the text {spec.arg.value!r} is among the outputs", hint="return tensors alone")
    if any(is_quantize(node) for node in program.graph.nodes):
        return
    if from_module:
        names = sorted({operator_name(node) for node in program.graph.nodes if node.op == "call_function"})
        raise UnsupportedError(
            f"no operator of the model can be quantized: it has {', '.join(names) or 'none'}",
            hint=next(filter(None, (way_out(name).hint for name in names)), "`openneutron ops` lists what can"),
        )
    raise UnsupportedError(
        "the program is not quantized",
        hint="quantize it with NeutronQuantizer (prepare_pt2e, calibrate, convert_pt2e), "
        "or give openneutron.compile the module and calibration data",
    )


def check_shapes(program: ExportedProgram) -> None:
    """Refuse inputs that are no tensors or have dynamic shapes, and sizes that depend on data."""
    user = set(program.graph_signature.user_inputs)
    for node in program.graph.nodes:
        if node.op == "call_function" and not is_static(node):
            raise UnsupportedError(
                f"the shape of {node.name} is {_sizes(node)}: it depends on data", hint="compute it in another program"
            )
        if node.op != "placeholder" or node.name not in user:
            continue
        if not isinstance(value_of(node), torch.Tensor):
            raise UnsupportedError(
                f"input {node.name} is {_kind(node)}, not a tensor", hint="make it part of the module"
            )
        if not is_static(node):
            raise UnsupportedError(
                f"input {node.name} has the dynamic shape {list(value_of(node).shape)}",
                hint="export with fixed shapes; NPU programs are compiled for one size",
            )


def _sizes(node: Node) -> str:
    value = value_of(node)
    first = value[0] if isinstance(value, (tuple, list)) and value else value
    return str(list(getattr(first, "shape", ())))


def _kind(node: Any) -> str:
    value = value_of(node)
    return "missing" if value is None else f"a {type(value).__name__}"
