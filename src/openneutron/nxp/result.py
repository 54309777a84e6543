"""The result of NXP's converter, checked and converted to ours: outputs in the user's order, and a report."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from openneutron.compiler.signature import of_operator
from openneutron.errors import ConverterError
from openneutron.litert.graph import Graph, Model, Operator
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.microcode.container import Container, graphs_of, io_bytes
from openneutron.microcode.graph_op import is_graph_op
from openneutron.nxp import limits
from openneutron.options import Options
from openneutron.report import model as report
from openneutron.verdict import Reason

NO_CYCLES = "NXP's converter gives no cycle estimate"
_VERSION = re.compile(r"neutron-(?:converter|compiler)\s+(\S+)")  # in the description it writes into the model


def finish(original: Model, converted: bytes, answer: dict[str, Any], options: Options) -> tuple[bytes, report.Report]:
    """Return the converted model with inputs and outputs in the original order, and its report."""
    where = f"{options.source} as NXP's converter returned it"
    model = read_model(converted, source=where)
    moved = [restore_order(original.main, model.main, kind, where) for kind in ("inputs", "outputs")]
    graphs = graphs_of(model, where=where)
    made = write_model(model) if any(moved) else converted
    return made, _report(original, model, graphs, answer, options)


def restore_order(original: Graph, converted: Graph, kind: str, where: str) -> bool:
    """Restore the original order of the converted graph's inputs or outputs, by name; returns whether it had changed."""
    wanted: list[int] = getattr(original, kind)
    found: list[int] = getattr(converted, kind)
    names = [original.tensors[t].name for t in wanted]
    theirs = [converted.tensors[t].name for t in found]
    if Counter(names) != Counter(theirs):
        lost, new = sorted(Counter(names) - Counter(theirs)), sorted(Counter(theirs) - Counter(names))
        raise ConverterError(f"its {kind} are not the model's: missing {lost}, unexpected {new}", where=where)
    moved = names != theirs
    if moved:
        if len(set(names)) != len(names):
            raise ConverterError(f"its {kind} moved and share names, so their order is lost: {theirs}", where=where)
        found[:] = [found[theirs.index(name)] for name in names]
    for name, mine, other in zip(names, wanted, found, strict=True):
        a, b = original.tensors[mine], converted.tensors[other]
        if (a.dtype, a.elements) != (b.dtype, b.elements):
            raise ConverterError(
                f"{name!r} of its {kind} is {b.dtype} {list(b.shape)}, the model's is {a.dtype} {list(a.shape)}",
                where=where,
            )
    return moved


def _operators_left(converted: Graph) -> dict[str, Operator]:
    """Return output tensor name → operator, for every operator that is no NeutronGraph."""
    rest = [op for op in converted.operators if not is_graph_op(op)]
    return {converted.tensors[t].name: op for op in rest for t in op.outputs}


def _containing_graphs(original: Graph, converted: Graph, left: dict[str, Operator]) -> dict[int, int]:
    """Return original operator → NeutronGraph that contains it, as far as tensor names tell."""
    graphs = [op for op in converted.operators if is_graph_op(op)]
    made = {converted.tensors[t].name: at for at, op in enumerate(graphs) for t in op.outputs}
    readers = original.consumers()
    graph_of: dict[int, int] = {}
    for index in range(len(original.operators) - 1, -1, -1):
        outputs = original.operators[index].outputs
        if any(original.tensors[t].name in left for t in outputs):
            continue
        named = [made[original.tensors[t].name] for t in outputs if original.tensors[t].name in made]
        # A tensor inside a NeutronGraph has no name in the result; its operator belongs to the graph of its reader.
        named += [graph_of[reader] for t in outputs for reader in readers.get(t, []) if reader in graph_of]
        if named:
            graph_of[index] = named[0]
    return graph_of


def _reason(graph: Graph, op: Operator, options: Options) -> Reason:
    verdict = limits.check(of_operator(graph, op), options.target)
    if verdict.reason is not None:
        return verdict.reason
    return Reason("nxp_left_out", "NXP's converter left it on the CPU", hint="its log may say why")


def _operators(original: Graph, converted: Graph, options: Options) -> list[report.Operator]:
    left = _operators_left(converted)
    graph_of = _containing_graphs(original, converted, left)
    found: list[report.Operator] = []
    for index, op in enumerate(original.operators):
        names = [original.tensors[t].name for t in op.outputs]
        stays = any(name in left for name in names)
        gone = not stays and index not in graph_of
        reason = None
        if stays:
            reason = _reason(original, op, options)
        elif gone:
            reason = Reason("nxp_removed", "NXP's converter removed it; the result does not need it")
        found.append(
            report.Operator(
                index=index,
                code=op.label,
                name=names[0] if names else "",
                converted=not stays and not gone,
                reason=reason.message if reason else "",
                reason_code=reason.code if reason else "",
                hint=reason.hint if reason else "",
                graph=graph_of.get(index, -1),
            )
        )
    return found


def _notes(original: Graph, converted: Graph, answer: dict[str, Any]) -> tuple[str, ...]:
    notes = [NO_CYCLES]
    mine = {original.tensors[t].name for op in original.operators for t in op.outputs}
    added = [f"{op.label} {name!r}" for name, op in _operators_left(converted).items() if name not in mine]
    if added:
        notes.append(f"NXP's converter added operators that run on the CPU: {', '.join(added)}")
    if answer.get("target"):
        figures = ", ".join(f"{name} {value}" for name, value in answer["target"].items())
        notes.append(f"NXP's SDK describes the target as {figures}")
    return tuple(notes)


def _version(model: Model, containers: list[Container], answer: dict[str, Any]) -> str:
    written = _VERSION.search(model.description)
    if written:
        return written.group(1)
    if answer.get("version"):
        return str(answer["version"])
    return f"0x{containers[0].version_word:08x}" if containers else ""


def _report(
    original: Model, model: Model, graphs: list[tuple[Operator, Container]], answer: dict[str, Any], options: Options
) -> report.Report:
    operators = _operators(original.main, model.main, options)
    containers = [container for _, container in graphs]
    io = [io_bytes(model.main, op, container) for op, container in graphs]
    peaks = [size + c.scratch_bytes + c.sram_scratch_bytes for size, c in zip(io, containers, strict=True)]
    totals = report.Totals(
        peak_bytes=max(peaks, default=0),
        io_bytes=max(io, default=0),
        scratch_bytes=max((c.scratch_bytes for c in containers), default=0),
        prefetch_bytes=max((c.sram_scratch_bytes for c in containers), default=0),
        weight_bytes=sum(c.weights_bytes for c in containers),
        microcode_bytes=sum(c.microcode_bytes for c in containers),
        operators_total=len(operators),
        operators_converted=sum(op.converted for op in operators),
        neutron_graphs=len(containers),
    )
    return report.Report(
        target=options.target,
        converter="nxp",
        converter_version=_version(model, containers, answer),
        source=options.source,
        totals=totals,
        operators=tuple(operators),
        notes=_notes(original.main, model.main, answer),
    )
