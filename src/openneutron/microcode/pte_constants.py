"""Reads the constant methods of an ExecuTorch program: numbers that it gives without running anything, without torch.

Example:
    >>> read_constants(Path("model.pte").read_bytes(), where="model.pte")["forward_input0_scale"]
    [0.0078125]
"""

from __future__ import annotations

import struct
from typing import Final

from openneutron.litert.walker import Table, Walker
from openneutron.microcode.pte import open_plans, value_at

# In the union of values, with how each is stored in its table.
_NUMBERS: Final = {2: struct.Struct("<q"), 3: struct.Struct("<?"), 4: struct.Struct("<d")}


def read_constants(pte: bytes, *, where: str) -> dict[str, list[float | int | bool]]:
    """Return method → numbers, of the methods that have no instructions and give nothing else."""
    walker, plans = open_plans(pte, where)
    found: dict[str, list[float | int | bool]] = {}
    for plan in plans:
        values = _numbers(walker, plan)
        if values:
            found[plan.text(0)] = values
    return found


def _numbers(walker: Walker, plan: Table) -> list[float | int | bool]:
    """Return the numbers that a plan gives; [] if it runs something, or gives something else."""
    if any(len(walker.table(at, "chain").positions(2)) for at in plan.positions(5)):
        return []
    numbers: list[float | int | bool] = []
    positions = plan.positions(2)
    for index in plan.values(4, "<i4"):
        value = walker.table(value_at(positions, index, plan), "value")
        kind = _NUMBERS.get(value.u8(0))
        table = value.table(1, "number") if kind is not None else None
        if kind is None or table is None:
            return []
        numbers.append(table.number(0, kind, kind.unpack(bytes(kind.size))[0]))
    return numbers
