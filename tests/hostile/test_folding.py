"""Constants that a file lies about are not computed: small files stay small in memory."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from openneutron.litert import DType, GraphBuilder, write_model
from openneutron.litert.graph import Model
from openneutron.litert.passes.constant_values import LARGEST
from openneutron.litert.passes.fold_constants import fold_constants
from openneutron.litert.read import read_model

ENOUGH = 64 << 20


def start() -> tuple[GraphBuilder, int]:
    g = GraphBuilder()
    return g, g.tensor("x", (1, 4), DType.INT8, 0.1, 0)


def finish(g: GraphBuilder, x: int) -> Model:
    y = g.tensor("y", (1, 4), DType.INT8, 0.1, 0)
    g.op("RELU", [x], [y])
    return g.finish([x], [y])


def outer(code: str) -> Model:
    """[30000, 1] and [1, 30000], whose result claims two elements."""
    g, x = start()
    a = g.tensor("a", (30_000, 1), DType.INT32, data=np.ones((30_000, 1), np.int32))
    b = g.tensor("b", (1, 30_000), DType.INT32, data=np.ones((1, 30_000), np.int32))
    g.op(code, [a, b], [g.tensor("c", (2,), DType.INT32)])
    return finish(g, x)


def repeated(code: str) -> Model:
    """One tensor of a megabyte, 6,000 times."""
    g, x = start()
    a = g.tensor("a", (LARGEST,), DType.INT8, data=np.ones(LARGEST, np.int8))
    options = {"values_count": 6000} if code == "PACK" else {}
    g.op(code, [a] * 6000, [g.tensor("c", (2,), DType.INT8)], axis=0, **options)
    return finish(g, x)


def gathered() -> Model:
    g, x = start()
    rows = g.tensor("a", (4, LARGEST // 4), DType.INT8, data=np.ones((4, LARGEST // 4), np.int8))
    at = g.tensor("i", (10_000,), DType.INT32, data=np.zeros(10_000, np.int32))
    g.op("GATHER", [rows, at], [g.tensor("c", (2,), DType.INT8)], axis=0)
    return finish(g, x)


def many() -> Model:
    """Each of them is small enough."""
    g, x = start()
    size = g.tensor("s", (1,), DType.INT32, data=np.array([LARGEST], np.int32))
    zero = g.tensor("z", (), DType.INT8, data=np.array(0, np.int8))
    for at in range(2000):
        g.op("FILL", [size, zero], [g.tensor(f"c{at}", (LARGEST,), DType.INT8)])
    return finish(g, x)


HOSTILE = {
    **{code: lambda code=code: outer(code) for code in ("ADD", "MUL", "FLOOR_DIV", "MAXIMUM")},
    **{code: lambda code=code: repeated(code) for code in ("CONCATENATION", "PACK")},
    "GATHER": gathered,
    "many": many,
}


def measure(name: str) -> tuple[int, int]:
    """Return the bytes that folding takes at most, and the operators that are folded."""
    model = read_model(write_model(HOSTILE[name]()))
    tracemalloc.start()
    try:
        folded = fold_constants(model.main)
        return tracemalloc.get_traced_memory()[1], len(folded)
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def measured() -> dict[str, list[int]]:
    """What `measure` returns, of a process in which nothing else allocates."""
    code = (
        "import json; from tests.hostile.test_folding import HOSTILE, measure;"
        "print(json.dumps({name: measure(name) for name in HOSTILE}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found: dict[str, list[int]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", HOSTILE)
def test_bounded(name: str, measured: dict[str, list[int]]) -> None:
    peak, folded = measured[name]
    assert peak < ENOUGH
    assert folded < 20
