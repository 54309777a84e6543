"""Every operator by four machines: ours, the golden, and LiteRT's reference and default kernels.

So the list of exceptions to "LiteRT's reference kernels are the definition" is measured, not remembered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from ai_edge_litert.interpreter import OpResolverType

from openneutron.convert import convert
from openneutron.litert import GraphBuilder
from openneutron.litert.graph import DType, Graph, Model, Operator
from openneutron.litert.write import write_model
from openneutron.options import Options
from openneutron.run.golden_source import GoldenSource, golden_source
from openneutron.run.reference_overrides import find_override
from tests.fuzz.seeds import plain_operators
from tests.golden import execute, interpret
from tests.golden import reference as expected

Array = npt.NDArray[Any]
TYPES = (DType.INT8, DType.UINT8, DType.INT16)
DRAWS = 8  # random inputs for each operator
_FROM_ZERO = ("SQRT", "RSQRT")  # LiteRT refuses roots of negative numbers; zero points here are 0


@dataclass(frozen=True)
class Opinion:
    """How far apart four results of one operator are, in steps of its output; None where LiteRT has no such kernel."""

    code: str
    dtype: DType
    golden: GoldenSource
    to_reference: int | None
    to_default: int | None
    between: int | None
    to_golden: int | None
    share: float  # of elements in which LiteRT's two kernels differ
    case: str = ""  # what is special about the operator
    aborts: bool = False  # the reference kernel ends the process on such inputs


def _single(model: Model, op: Operator) -> tuple[bytes, list[int]]:
    graph = model.main
    read = [i for i in dict.fromkeys(op.inputs) if i >= 0 and graph.tensors[i].data is None]
    return write_model(Model([Graph("one", graph.tensors, [op], read, list(op.outputs))])), read


def _far(a: list[Array] | None, b: list[Array] | None) -> int | None:
    if a is None or b is None:
        return None
    return max(int(np.abs(x.astype(np.int64) - y.astype(np.int64)).max(initial=0)) for x, y in zip(a, b, strict=True))


def _worst(found: list[int | None]) -> int | None:
    known = [one for one in found if one is not None]
    return max(known) if len(known) == len(found) else None


def _tried(data: bytes, inputs: list[Array], resolver: OpResolverType) -> list[Array] | None:
    try:
        return interpret(data, inputs, resolver)
    except (RuntimeError, ValueError):
        return None  # not registered, or not for this type


def opinion(model: Model, op: Operator, dtype: DType, case: str = "") -> Opinion | None:
    """One operator on random inputs; None where it stays on the CPU."""
    data, read = _single(model, op)
    result = convert(data, Options())
    if any(one.reason for one in result.report.operators):
        return None
    rng = np.random.default_rng(0)
    apart: list[tuple[int | None, ...]] = []
    differing = total = 0
    aborts = False
    override = find_override(model.main, op) if op.code == "SOFTMAX" else None
    for _ in range(DRAWS):
        inputs = []
        for index in read:
            tensor = model.main.tensors[index]
            limits = np.iinfo(tensor.dtype.numpy)
            low = 0 if op.code in _FROM_ZERO else limits.min
            inputs.append(rng.integers(low, limits.max + 1, tensor.shape, dtype=tensor.dtype.numpy))
        ours = execute(result.model, inputs)
        values = dict(zip(read, inputs, strict=True))
        ends = override is not None and bool(override.undefined(model.main, op, values).any())
        aborts |= ends
        reference = None if ends else _tried(data, inputs, OpResolverType.BUILTIN_REF)
        default = _tried(data, inputs, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
        golden = None
        if ends and override is not None:
            golden = [override.compute(model.main, op, values)]
        elif reference is not None or default is not None:
            golden = expected(data, inputs)
        apart.append((_far(ours, reference), _far(ours, default), _far(reference, default), _far(ours, golden)))
        if reference is not None and default is not None:
            differing += sum(int((a != b).sum()) for a, b in zip(reference, default, strict=True))
            total += sum(a.size for a in reference)
    distances = [_worst([one[at] for one in apart]) for at in range(4)]
    return Opinion(
        op.code, dtype, golden_source(model.main, op), *distances, differing / total if total else 0.0, case, aborts
    )


def opinions() -> Iterator[Opinion]:
    """All of them; operators that occur twice count once, by their larger distances."""
    for dtype in TYPES:
        merged: dict[str, Opinion] = {}
        for model in plain_operators(dtype):
            for op in model.main.operators:
                one = opinion(model, op, dtype)
                before = merged.get(op.code)
                if one is not None and (before is None or (one.between or 0) > (before.between or 0)):
                    merged[op.code] = one
        yield from merged.values()
        for case, model in special(dtype).items():
            one = opinion(model, model.main.operators[0], dtype, case)
            if one is not None:
                yield one


def special(dtype: DType) -> dict[str, Model]:
    """Operators whose golden depends on more than their type."""
    if dtype is DType.INT16:
        return {}
    made = {}
    for case, depth, scale in (("of 512 values and more", 640, 0.001), ("with beta · s_in ≤ 2^−26", 8, 2.0**-27)):
        g = GraphBuilder()
        zero = 128 if dtype is DType.UINT8 else 0
        x = g.tensor("x", (1, depth), dtype, scale=scale, zero_point=zero)
        y = g.tensor("y", (1, depth), dtype, scale=1 / 256, zero_point=zero - 128)
        g.op("SOFTMAX", [x], [y], beta=1.0)
        made[case] = g.finish([x], [y])
    return made


def _steps(distance: int | None, *, aborts: bool) -> str:
    return ("aborts" if aborts else "no kernel") if distance is None else str(distance)


def table(found: list[Opinion]) -> str:
    """Operators whose golden is not the reference kernel, and those in which LiteRT's kernels differ; Markdown."""
    rows = [
        "| operator | type | compared with | why | to the reference | to the default kernel | these two differ by | in |",
        "|---|---|---|---|---:|---:|---:|---:|",
    ]
    for one in found:
        if not one.golden.why and not one.between and one.to_reference == 0:
            continue
        share = f"{100 * one.share:.1f} %" if one.between else ""
        who = {"reference": "reference", "default": "default", "override": "this page"}[one.golden.engine]
        steps = [_steps(at, aborts=one.aborts) for at in (one.to_reference, one.to_default, one.between)]
        name, why = f"{one.code} {one.case}".strip(), one.golden.why.removeprefix(f"{one.code}: ")
        rows.append(f"| {name} | {str(one.dtype).upper()} | {who} | {why} | {' | '.join(steps)} | {share} |")
    return "\n".join(rows)
