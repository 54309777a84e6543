"""A float model is quantized in several ways, compared with itself, and searched for what costs no cycles."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.litert import DType, write_model
from openneutron.litert.build import GraphBuilder
from openneutron.quantize_litert import float_model
from openneutron.quantize_litert.float_model import FloatModel, NoTwin, run_twin
from openneutron.quantize_litert.methods import Methods
from openneutron.report.accuracy import lowest_sqnr

RANDOM = np.random.default_rng(7)
SIZES = np.float32([0.02, 0.1, 1.0, 20.0])  # of channels between two layers, which equalizing makes alike


def uneven() -> bytes:
    """Two convolutions with channels of very different sizes between them, and a few wide values."""
    g = GraphBuilder()
    x = last = g.tensor("x", (1, 6, 6, 4), DType.FLOAT32)
    for name, scale in (("first", SIZES), ("second", 1 / SIZES)):
        values = RANDOM.uniform(-1, 1, (4, 3, 3, 4)).astype(np.float32)
        values *= scale.reshape(-1, 1, 1, 1) if name == "first" else scale
        weights = g.tensor(f"{name} weights", values.shape, DType.FLOAT32, data=values)
        bias = g.tensor(f"{name} bias", (4,), DType.FLOAT32, data=np.zeros(4, np.float32))
        made = g.tensor(name, (1, 6, 6, 4), DType.FLOAT32)
        g.op("CONV_2D", [last, weights, bias], [made], padding="SAME", stride_w=1, stride_h=1)
        last = made
    return write_model(g.finish([x], [last]))


SAMPLES = [(RANDOM.uniform(-1, 1, (1, 6, 6, 4)).astype(np.float32),) for _ in range(4)]


@pytest.fixture
def model() -> FloatModel:
    return FloatModel(uneven(), SAMPLES)


def test_a_search_finds_what_helps_and_its_figure_holds(model: FloatModel) -> None:
    plain = model.compare(model.quantize("int8", (), Methods()))
    methods, tried = model.search(40.0)
    assert tried in (7, 8) and methods.balance is not None and methods.round_weights
    found = model.compare(model.quantize("int8", (), methods))
    assert lowest_sqnr(plain) < 20 and lowest_sqnr(found) > lowest_sqnr(plain) + 10


def test_samples_that_are_held_out_set_no_ranges_and_judge() -> None:
    large = (10 * SAMPLES[0][0],)
    model = FloatModel(uneven(), [large, *SAMPLES[1:]], held=1)
    assert model.seen["x"].range == FloatModel(uneven(), SAMPLES[1:]).seen["x"].range
    assert len(model.wanted) == 4 and np.abs(model.wanted[0][0]).max() > 5 * np.abs(model.wanted[1][0]).max()


@pytest.mark.parametrize(("count", "held"), [(23, [0]), (24, [0, 8]), (60, [0, 16])])
def test_a_search_holds_out_a_third_of_enough_samples(
    count: int, held: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    monkeypatch.setattr(FloatModel, "_search", lambda self, goal: found.append(self.held) or (Methods(), 1))
    model = FloatModel(uneven(), (SAMPLES * 15)[:count])
    model.search(40.0)
    assert [model.held, *found][-len(held) :] == held


def test_twins_measure_what_reference_kernels_do(model: FloatModel) -> None:
    made = model.quantize("int8", (), Methods(round_weights=True))
    exact = lowest_sqnr(model.compare(made))
    assert abs(lowest_sqnr(model._compare(run_twin(float_model.float_twin(made)))) - exact) < 1.0


def test_a_cut_range_is_whole_again_where_all_around_has_16_bits(model: FloatModel) -> None:
    methods = Methods(ranges=(("first", -0.25, -0.25),))

    def scale(*wide: str) -> float:
        made = model.quantize("int8", wide, methods).main
        (found,) = [one for one in made.tensors if one.name == "first"]
        assert found.quantization is not None
        return found.quantization.scalar[0] * (2**15 if found.dtype is DType.INT16 else 2**7)

    assert scale() == pytest.approx(scale("first"), rel=0.1) and scale("first", "second") > 1.5 * scale()


def test_without_a_twin_reference_kernels_compare_and_no_noise_is_measured(
    model: FloatModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise NoTwin

    monkeypatch.setattr(float_model, "run_twin", refuse)
    methods, tried = model.search(40.0)
    assert tried == 6 and methods.round_weights and not methods.ranges
    assert model.noise(methods, [])[1].alone.size == 0
