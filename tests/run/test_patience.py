"""How long LiteRT may take."""

from __future__ import annotations

import pytest

from openneutron.errors import RuntimeFailure
from openneutron.litert import DType, GraphBuilder
from openneutron.litert.graph import Model
from openneutron.run.patience import DEFAULT_SECONDS, patience


def product(rows: int) -> Model:
    g = GraphBuilder()
    x, w = g.tensor("x", (rows, 1 << 12), DType.FLOAT32), g.tensor("w", (1 << 12, 1 << 12), DType.FLOAT32)
    y = g.tensor("y", (rows, 1 << 12), DType.FLOAT32)
    g.op("FULLY_CONNECTED", [x, w, -1], [y])
    return g.finish([x, w], [y])


def test_a_minute_and_what_the_multiplications_take() -> None:
    assert patience(Model([])) == DEFAULT_SECONDS
    assert patience(product(10)) == DEFAULT_SECONDS + 10 * 2**24 // 10_000_000
    assert patience(product(1 << 14)) == 600  # 2^38 are not believed


def test_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, seconds in (("5", 5), ("0", 0)):
        monkeypatch.setenv("OPENNEUTRON_TIMEOUT", text)
        assert patience(product(10)) == seconds
    monkeypatch.setenv("OPENNEUTRON_TIMEOUT", "soon")
    with pytest.raises(RuntimeFailure, match="not a number of seconds"):
        patience(product(10))
