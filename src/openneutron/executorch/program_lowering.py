"""From a quantized program to the `.pte`: partition, compile, place what is left, write, seal."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from executorch.exir import EdgeProgramManager
from torch.export import ExportedProgram
from torch.fx import GraphModule

from openneutron.errors import UnsupportedError
from openneutron.executorch.deliver.etrecord import etrecord_of
from openneutron.executorch.deliver.host_kernels import check_host_convolutions, check_host_kernels
from openneutron.executorch.deliver.session import CompileSession
from openneutron.executorch.edge.delegate import delegate, retrace
from openneutron.executorch.engines import Engines, engines_of
from openneutron.executorch.fx import operator_name, source_line, value_of
from openneutron.executorch.partition.border_facts import border_constants
from openneutron.executorch.partition.passes.make_islands_contiguous import Copies, copies_of, make_islands_contiguous
from openneutron.executorch.partition.passes.remove_border_quantize import Border, remove_border_quantize
from openneutron.executorch.stage_times import Stages
from openneutron.executorch.upstream.edge_names import add_constant_methods
from openneutron.executorch.upstream.leave_inductor_out import write_without_inductor
from openneutron.executorch.upstream.names import SpecViolationError, with_graph
from openneutron.executorch.upstream.read_delegate_results import read_delegate_results
from openneutron.microcode.pte import read_plan
from openneutron.microcode.seal import write_sealed
from openneutron.options import Options
from openneutron.report.model import NodeVerdict


@dataclass(frozen=True)
class LoweredProgram:
    """The sealed `.pte`, the Edge program it was written from, and facts for the report.

    `retraced` is as in `Delegated`; `unmatched` are patterns of `operators_not_to_delegate` that match no node.
    `etrecord` makes the record for ExecuTorch's Inspector.
    """

    pte: bytes
    edge: ExportedProgram
    verdicts: tuple[NodeVerdict, ...]
    copies: Copies
    borders: tuple[Border, ...]
    arena_bytes: int = 0
    retraced: str = ""
    unmatched: tuple[str, ...] = ()
    etrecord: Callable[[], Any] | None = None


def lower_program(
    program: ExportedProgram,
    spec: Options,
    stages: Stages,
    *,
    int8_io: bool = False,
    engines: Engines | None = None,
    placement: str = "all",
    session: CompileSession | None = None,
    constants: Mapping[str, Any] | None = None,
) -> LoweredProgram:
    """Partition, compile and serialize; with `int8_io` the border's quantize and dequantize go.

    `session` has the bodies of the program's layer calls, if it has such calls. `constants` become methods by these names.
    """
    import executorch.kernels.quantized  # noqa: F401  without it to_executorch knows no quantize.out
    from executorch.exir import to_edge_transform_and_lower

    engines = engines or engines_of("neutron")
    partitioner = engines.partitioner(spec, placement, session)
    retraced = ""
    with stages("partitioning and compiling"):
        try:
            if partitioner is None:
                edge = to_edge_transform_and_lower(
                    program, compile_config=engines.compile_config(), constant_methods=dict(constants or {}) or None
                )
            elif engines.cortex_m:
                edge = retrace(program, partitioner, engines.compile_config(), constants)
            else:
                delegated = delegate(program, partitioner, constants)
                edge, retraced = delegated.manager, delegated.retraced
        except SpecViolationError as error:
            raise _no_core_operator(program, str(error)) from error
    if partitioner is None:
        make_islands_contiguous(edge.exported_program().graph_module)
    borders = remove_border_quantize(edge.exported_program()) if int8_io else []
    if borders and all(border.reason for border in borders):
        raise UnsupportedError(
            f"no input or output can be INT8: {borders[0]}", hint="leave INT8 I/O off, or quantize what reads it"
        )
    add_constant_methods(edge, border_constants(borders, len(edge.exported_program().graph_signature.user_inputs)))
    with stages("placing leftovers") if engines.cortex_m else nullcontext():
        verdicts = engines.place_leftovers(edge, () if partitioner is None else partitioner.verdicts)
    check_host_convolutions(edge.exported_program().graph)
    copies = copies_of(edge.exported_program().graph_module)
    # to_executorch rewrites the graph in place; comparisons need it as it was.
    program = edge.exported_program()
    lowered = with_graph(
        program, GraphModule(program.graph_module, copy.deepcopy(program.graph)), program.graph_signature
    )
    with stages("writing the program"):
        pte, executorch_program = seal_program(edge)
    gone = {border.node for border in borders if not border.reason}
    verdicts = tuple(verdict for verdict in verdicts if verdict.name not in gone)
    check_host_kernels(tuple(read_plan(pte, where="<pte>", with_payloads=False).operators), verdicts)
    arenas = executorch_program.executorch_program.execution_plan[0].non_const_buffer_sizes
    unmatched = () if partitioner is None else partitioner.unmatched
    record = partial(etrecord_of, lowered, executorch_program)
    return LoweredProgram(pte, lowered, verdicts, copies, tuple(borders), sum(arenas), retraced, unmatched, record)


def seal_program(edge: EdgeProgramManager) -> tuple[bytes, Any]:
    """Return the sealed `.pte` of an Edge program, which is rewritten in place, and ExecuTorch's manager of it."""
    # With gradients a buffer that the CPU keeps could not be written in place.
    with torch.no_grad(), read_delegate_results(), write_without_inductor():
        for name in edge.methods:
            _keep_first_contents(edge.exported_program(name))
        program = edge.to_executorch()
        return write_sealed(program.write_to_file), program


def _keep_first_contents(program: ExportedProgram) -> None:
    """Ask ExecuTorch to write the first contents of buffers that the CPU keeps; otherwise it writes their shapes alone."""
    signature = program.graph_signature
    changed = set(signature.buffers_to_mutate.values())
    for node in program.graph.nodes:
        if node.op == "placeholder" and signature.inputs_to_buffers.get(node.name) in changed:
            node.meta["et_init_buffer"] = True


def _no_core_operator(program: ExportedProgram, message: str) -> UnsupportedError:
    """The error for an operator that ExecuTorch's verifier refuses; for complex numbers it names the operator behind them."""
    for node in program.graph.nodes:
        value = value_of(node)
        if node.op == "call_function" and isinstance(value, torch.Tensor) and value.is_complex():
            line = source_line(node)
            return UnsupportedError(
                f"{operator_name(node)} ({node.name}{', ' + line if line else ''}) makes complex numbers, which no "
                "operator behind it takes",
                hint="end the model before it, or compute real and imaginary parts as products with a constant matrix",
            )
    found = re.search(r"aten\.\w+\.\w+", message)
    return UnsupportedError(
        f"ExecuTorch has no place for operator {found[0] if found else ''}: it is not among its core operators",
        hint="write the model without it",
    )
