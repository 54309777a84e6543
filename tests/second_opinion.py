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
from openneutron.litert.graph import DType, Graph, Model, Operator
from openneutron.litert.write import write_model
from openneutron.options import Options
from openneutron.run.golden_source import GoldenSource, golden_source
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


def opinion(model: Model, op: Operator, dtype: DType) -> Opinion | None:
    """One operator on random inputs; None where it stays on the CPU."""
    data, read = _single(model, op)
    result = convert(data, Options())
    if any(one.reason for one in result.report.operators):
        return None
    rng = np.random.default_rng(0)
    apart: list[tuple[int | None, ...]] = []
    differing = total = 0
    for _ in range(DRAWS):
        inputs = []
        for index in read:
            tensor = model.main.tensors[index]
            limits = np.iinfo(tensor.dtype.numpy)
            low = 0 if op.code in _FROM_ZERO else limits.min
            inputs.append(rng.integers(low, limits.max + 1, tensor.shape, dtype=tensor.dtype.numpy))
        ours = execute(result.model, inputs)
        reference = _tried(data, inputs, OpResolverType.BUILTIN_REF)
        default = _tried(data, inputs, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
        golden = expected(data, inputs) if reference is not None or default is not None else None
        apart.append((_far(ours, reference), _far(ours, default), _far(reference, default), _far(ours, golden)))
        if reference is not None and default is not None:
            differing += sum(int((a != b).sum()) for a, b in zip(reference, default, strict=True))
            total += sum(a.size for a in reference)
    distances = [_worst([one[at] for one in apart]) for at in range(4)]
    return Opinion(op.code, dtype, golden_source(model.main, op), *distances, differing / total if total else 0.0)


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


def _steps(distance: int | None) -> str:
    return "no kernel" if distance is None else str(distance)


def table(found: list[Opinion]) -> str:
    """Operators whose golden is not the reference kernel, and those in which LiteRT's kernels differ; Markdown."""
    rows = [
        "| operator | type | compared with | to the reference | to the default kernel | these two differ by | in |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for one in found:
        if not one.golden.why and not one.between and one.to_reference == 0:
            continue
        share = f"{100 * one.share:.1f} %" if one.between else ""
        who = {"reference": "reference", "default": "default", "form": "this page"}[one.golden.engine]
        steps = [_steps(distance) for distance in (one.to_reference, one.to_default, one.between)]
        rows.append(f"| {one.code} | {str(one.dtype).upper()} | {who} | {' | '.join(steps)} | {share} |")
    return "\n".join(rows)
