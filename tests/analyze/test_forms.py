from __future__ import annotations

import numpy as np

import openneutron
from openneutron.analyze.accuracy import Labelled
from openneutron.analyze.forms import compiled_form, litert_forms
from openneutron.analyze.sharded import score_shards
from tests import tiny
from tests.analyze.test_sharded import Part


def test_a_compiled_file_answers_as_its_reference() -> None:
    model = tiny.convnet()
    form, wanted = compiled_form(openneutron.compile(model).data, where="out.tflite")
    assert wanted.shape == (8, 8, 3) and wanted.channels_last
    x = np.random.default_rng(0).uniform(-1, 1, (12, 8, 8, 3)).astype(np.float32)
    data = Labelled(x, np.zeros(12, np.int64))
    first, other = score_shards([*litert_forms("m", {"reference": model}), form], [Part("all", lambda: data)]).scores
    assert first.name == "reference" and other.name == "compiled" and np.array_equal(first.answers, other.answers)
    assert len(set(first.answers)) > 1
