"""A LiteRT model with a cache of rows that a step writes at a position known only at run time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from openneutron.litert import DType, GraphBuilder
from openneutron.litert.write import write_model


@dataclass(frozen=True)
class Cache:
    """cache[:, :, position] ← row; scores = row · cacheᵀ; embedding = table[position]. Two heads, a context of 6."""

    dtype: DType = DType.INT8
    row: ClassVar[tuple[int, ...]] = (1, 2, 1, 4)
    context: ClassVar[int] = 6

    def data(self) -> bytes:
        """The model's bytes."""
        g, scale = GraphBuilder(), 0.05 if self.dtype is DType.INT8 else 0.0005
        shape = (1, 2, self.context, 4)
        row = g.tensor("row", self.row, self.dtype, scale, 0)
        position = g.tensor("position", (1,), DType.INT32)
        handle = g.variable("cache", np.zeros(shape), self.dtype)
        before, after = (g.tensor(name, shape, self.dtype, scale, 0) for name in ("before", "after"))
        g.op("READ_VARIABLE", [handle], [before])
        zeros = [g.tensor(f"zeros{n}", (n,), DType.INT32, data=[0] * n) for n in (2, 1)]
        starts = g.tensor("starts", (4,), DType.INT32)
        g.op("CONCATENATION", [zeros[0], position, zeros[1]], [starts], axis=0)
        g.op("DYNAMIC_UPDATE_SLICE", [before, row, starts], [after])
        g.op("ASSIGN_VARIABLE", [handle, after], [])
        scores = g.tensor("scores", (1, 2, 1, self.context), self.dtype, scale * 8, 0)
        g.op("BATCH_MATMUL", [row, after], [scores], adj_y=True)
        values = np.random.default_rng(5).integers(-99, 99, (self.context, 3))
        table = g.tensor("table", values.shape, self.dtype, scale, 0, data=values)
        embedding = g.tensor("embedding", (1, 3), self.dtype, scale, 0)
        g.op("GATHER", [table, position], [embedding], axis=0)
        return write_model(g.finish([row, position], [scores, embedding]))
