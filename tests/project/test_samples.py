"""Samples: inputs of a user or random ones, outputs of consecutive runs, C that a compiler takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import openneutron
from openneutron.errors import InternalError, OptionError
from openneutron.executorch.deliver.embed import input_rows
from openneutron.project.open_model import OpenModel, open_model
from openneutron.project.samples import (
    agrees_with_litert,
    c_text,
    make_samples,
    sample_bytes,
    samples_header,
    samples_source,
)
from openneutron.run.runner import LiteRtRunner
from tests import tiny
from tests.streaming import streaming_convnet


def test_random_samples_have_the_outputs_of_the_reference(small: OpenModel) -> None:
    samples = make_samples(small.payload, [], count=3, seed=7, where="small")
    reference = LiteRtRunner(tiny.convnet())
    assert len(samples) == 3
    for sample in samples:
        wanted = reference.run(list(sample.inputs)).outputs.values()
        assert [found.tobytes() for found in sample.outputs] == [one.tobytes() for one in wanted]
    assert samples[0].inputs[0].tobytes() != samples[1].inputs[0].tobytes()
    assert (
        samples[1].inputs[0].tobytes()
        == make_samples(small.payload, [], count=1, seed=8, where="small")[0].inputs[0].tobytes()
    )


def test_real_numbers_are_stored_as_the_model_takes_them(small: OpenModel) -> None:
    (row,) = input_rows(small.payload, where="small")
    real = np.linspace(-9, 9, int(np.prod(row.shape)), dtype=np.float32).reshape(row.shape)
    (sample,) = make_samples(small.payload, [[real]], count=5, seed=0, where="small")
    stored = sample.inputs[0]
    assert stored.dtype == np.int8 and stored.min() == -128 and stored.max() == 127
    inside = (stored > -128) & (stored < 127)
    assert np.abs((stored[inside] - row.zero_point) * row.scale - real[inside]).max() <= row.scale * 0.5001


def test_halves_are_rounded_away_from_zero(small: OpenModel) -> None:
    (row,) = input_rows(small.payload, where="small")
    real = np.zeros(row.shape, np.float32)
    real.flat[:2] = np.float32(row.scale) * np.float32(0.5), np.float32(row.scale) * np.float32(-0.5)
    (sample,) = make_samples(small.payload, [[real]], count=1, seed=0, where="small")
    assert [int(one) - row.zero_point for one in sample.inputs[0].flat[:2]] == [1, -1]


def test_wrong_inputs_are_refused(small: OpenModel) -> None:
    with pytest.raises(OptionError, match=r"input 0 is int8 .1, 2"):
        make_samples(small.payload, [[np.zeros((1, 2), np.int8)]], count=1, seed=0, where="small")
    with pytest.raises(OptionError, match="2 inputs given"):
        make_samples(small.payload, [[np.zeros(1), np.zeros(1)]], count=1, seed=0, where="small")
    with pytest.raises(OptionError, match="no sample"):
        make_samples(small.payload, [], count=0, seed=0, where="small")


def test_state_goes_on_from_sample_to_sample() -> None:
    model = open_model(openneutron.compile(streaming_convnet(), target="cortex_m33").data, "stream")
    (row,) = input_rows(model.payload, where="stream")
    same = [[np.full(row.shape, 5, np.int8)]] * 2
    first, second = make_samples(model.payload, same, count=2, seed=0, where="stream")
    assert first.outputs[0].tobytes() != second.outputs[0].tobytes()


def test_the_source_holds_every_sample_aligned(small: OpenModel) -> None:
    samples = make_samples(small.payload, [], count=2, seed=0, where="small")
    for section in (True, False):
        source = samples_source(samples, section=section)
        assert source.count("aligned(16)") == 4
        assert (".payload" in source) == section
    header = samples_header(samples, 'a "title" of 100 %\n')
    assert "#define SAMPLES 2u" in header and '"a _title_ of 100 __"' in header
    assert sample_bytes(samples) == 2 * sample_bytes(samples[:1])
    odd = replace(samples[0], outputs=(np.zeros(17, np.int8),))
    assert "#define SAMPLE_OUTPUT_ROOM 32u" in samples_header([odd], "")


def test_titles_cannot_leave_their_string() -> None:
    assert c_text('x"; system("') == '"x_; system(_"'


def test_litert_is_asked_for_the_same_outputs(small: OpenModel) -> None:
    samples = make_samples(small.payload, [], count=2, seed=0, where="small")
    assert agrees_with_litert(tiny.convnet(), "small", small.border, samples)
    wrong = replace(samples[1], outputs=(samples[1].outputs[0] + 1,))
    with pytest.raises(InternalError, match="small: sample 1: the simulator's outputs are not LiteRT's"):
        agrees_with_litert(tiny.convnet(), "small", small.border, [samples[0], wrong])
    other = replace(small.border, inputs=("another",))
    assert not agrees_with_litert(tiny.convnet(), "small", other, samples)
