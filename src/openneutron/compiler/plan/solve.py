"""Allocation as a constraint problem for `--optimize max`, solved by OR-Tools CP-SAT, which only this module imports.

Results are reproducible: one worker, a fixed seed, a limit in deterministic time, variables in a fixed order. The given height
is an upper bound, so the result is never worse. The solver's version is recorded in the identity block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from openneutron.compiler.l2 import Buffer, Overlap
from openneutron.extras import extra
from openneutron.microcode.table import ALIGNMENT

# Deterministic seconds: enough to prove the optimum on sets of 300 buffers (docs/compiler.md, Allocation).
LIMIT = 4.0
_LARGEST = 600  # buffers; with more, building the model takes longer than the result is worth


def solver_version() -> tuple[int, int, int]:
    """Return OR-Tools' major and minor version, and 0, as the identity block stores them."""
    with extra("`--optimize max`"):
        import ortools

    major, minor, *_ = (int(part) for part in ortools.__version__.split(".")[:2])
    return major, minor, 0


def _pairwise(model: Any, at: list[Any], sizes: list[int], i: int, j: int, pair: Overlap | None) -> None:
    """Constrain two buffers that are alive together to lie apart, or as their overlap allows, in units of the alignment."""
    choices = [(at[i] + sizes[i] <= at[j]), (at[j] + sizes[j] <= at[i])]
    if pair is not None:
        dying, born = pair.dying, pair.born
        distance = pair.distance // ALIGNMENT
        if pair.upward:
            choices.append(at[born] + sizes[born] >= at[dying] + sizes[dying] + distance)
        else:
            choices.append(at[born] + distance <= at[dying])
        if pair.exact:
            choices.append(at[born] == at[dying])
    flags = [model.new_bool_var("") for _ in choices]
    model.add_bool_or(flags)
    for flag, choice in zip(flags, choices, strict=True):
        model.add(choice).only_enforce_if(flag)


def solve(
    buffers: Sequence[Buffer], pairs: dict[tuple[int, int], Overlap], offsets: list[int], height: int
) -> tuple[int, list[int]]:
    """Return a height and offsets that are at least as good as the given ones."""
    if len(buffers) > _LARGEST or not buffers:
        return height, offsets
    with extra("`--optimize max`"):
        from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    sizes = [b.size // ALIGNMENT for b in buffers]
    top = height // ALIGNMENT
    total = model.new_int_var(max(sizes), top, "height")
    at = [model.new_int_var(0, top - size, f"b{i}") for i, size in enumerate(sizes)]
    for i, b in enumerate(buffers):
        model.add(at[i] + sizes[i] <= total)
        model.add_hint(at[i], offsets[i] // ALIGNMENT)
        for j in range(i):
            c = buffers[j]
            if b.first <= c.last and c.first <= b.last:
                _pairwise(model, at, sizes, i, j, pairs.get((i, j)))
    model.minimize(total)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    solver.parameters.max_deterministic_time = LIMIT
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return height, offsets
    found = [int(solver.value(v)) * ALIGNMENT for v in at]
    reached = max(o + b.size for o, b in zip(found, buffers, strict=True))
    return (reached, found) if reached < height else (height, offsets)
