from __future__ import annotations

import pytest

from openneutron.analyze.exactness import with_exactness
from openneutron.convert import convert
from openneutron.litert import DType, GraphBuilder, write_model
from openneutron.options import Options
from openneutron.run.golden import Golden
from tests import tiny


@pytest.mark.parametrize("make", [tiny.convnet, tiny.sandwich], ids=lambda make: make.__name__)
def test_every_layer_of_a_litert_model_is_measured(make) -> None:
    report = convert(make(), Options()).report
    measured = with_exactness(report, [make()], Options())
    assert [kernel.lsb for kernel in report.kernels] == [None] * len(report.kernels)
    assert [kernel.lsb for kernel in measured.kernels] == [0.0] * len(report.kernels)


def test_a_difference_is_told_of_the_layer_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """One value of the first layer's reference is moved by 3: only that layer differs."""
    report = convert(tiny.convnet(), Options()).report
    first = report.kernels[0]
    original = Golden.run

    def moved(self, inputs):
        values = original(self, inputs)
        value = values[first.tensor].copy()
        value.flat[0] += 3 if value.flat[0] < 100 else -3
        return values | {first.tensor: value}

    monkeypatch.setattr(Golden, "run", moved)
    found = with_exactness(report, [tiny.convnet()], Options())
    assert [kernel.lsb for kernel in found.kernels] == [3.0] + [0.0] * (len(report.kernels) - 1)


def test_a_model_that_litert_cannot_run_has_a_note_and_its_figures() -> None:
    g = GraphBuilder()
    x, y, z = (g.tensor(name, (1, 4), DType.INT8, scale=0.1, zero_point=3) for name in "xyz")
    g.op("RELU", [x], [y])
    g.custom("Mine", [y], [z])
    model = write_model(g.finish([x], [z]))
    report = convert(model, Options()).report
    found = with_exactness(report, [model], Options())
    assert found.kernels == report.kernels and found.totals == report.totals
    (note,) = set(found.notes) - set(report.notes)
    assert note.startswith("no layer was compared with LiteRT's reference kernels") and "Mine" in note
