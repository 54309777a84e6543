from __future__ import annotations

import pytest

from openneutron.analyze.profile import ARRAY_MACS, Code, profile
from openneutron.convert import convert
from openneutron.options import Options
from tests import tiny
from tests.analyze.subjects import subject_of


def code(named: bool) -> Code:
    subject = subject_of(tiny.convnet())
    blocks = (subject.microcode, subject.weights, subject.kernels_block)
    return Code("test", blocks, subject.program(), subject.kernels if named else ())


def test_a_profile_measures_what_the_compiler_predicted() -> None:
    predicted = convert(tiny.convnet(), Options()).report
    found = profile([code(named=True)], source="tiny")
    assert found.totals.cycles == predicted.totals.cycles
    assert found.totals.peak_bytes == predicted.totals.peak_bytes
    for ours, theirs in zip(found.kernels, predicted.kernels, strict=True):
        for field in ("name", "kernel", "macs", "calls", "cycles", "compute_cycles", "memory_cycles", "weight_bytes"):
            assert getattr(ours, field) == getattr(theirs, field), (theirs.name, field)
    assert [(e.name, e.start, e.end) for e in found.events] == [(e.name, e.start, e.end) for e in predicted.events]


def test_without_a_bundle_layers_have_numbers_and_the_macs_of_the_array() -> None:
    found = profile([code(named=False)] * 2, source="tiny")
    assert {kernel.name for kernel in found.kernels} == {"node 0", "node 1", "node 2", "node 3"}
    assert found.totals.neutron_graphs == 2
    assert found.totals.cycles == 2 * convert(tiny.convnet(), Options()).report.totals.cycles
    linear = next(kernel for kernel in found.kernels if kernel.kernel == "fully_connected")
    assert linear.macs == 5 * 128
    assert found.notes == (ARRAY_MACS,) and not profile([code(named=True)], source="tiny").notes
    assert all(kernel.activation_bytes for kernel in found.kernels)


def test_sums_are_those_of_the_events(monkeypatch: pytest.MonkeyPatch) -> None:
    every = profile([code(named=True)], source="tiny")
    monkeypatch.setattr("openneutron.analyze.profile.MOST_EVENTS", 0)
    sums = profile([code(named=True)], source="tiny")
    assert (sums.kernels, sums.totals) == (every.kernels, every.totals)
    assert sums.events == every.events  # each node is called once
