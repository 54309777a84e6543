"""`openneutron.compile(..., isolated=True)`: the same program as without."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

import openneutron as on
from openneutron.errors import ConverterError, FormatError, OptionError
from openneutron.sandbox import compile_child
from openneutron.sandbox.compile_in_sandbox import _pack_batches
from openneutron.sandbox.supervisor import Limits
from tests import tiny


def test_the_same_program(tmp_path: Path) -> None:
    file = tmp_path / "m.tflite"
    file.write_bytes(tiny.convnet())
    options = {"target": "mcxn94x", "dump_intermediates": True, "dump_kernel_selection_code": True}
    ours, theirs = on.compile(file, **options), on.compile(file, isolated=True, **options)
    assert (ours.data, ours.kind, ours.kernel_selection) == (theirs.data, theirs.kind, theirs.kernel_selection)
    assert (ours.kernel_selections, ours.intermediates) == (theirs.kernel_selections, theirs.intermediates)
    assert ours.report.totals == theirs.report.totals and ours.verdicts == theirs.verdicts
    x = np.zeros((1, 8, 8, 3), np.int8)
    assert np.array_equal(ours.run(x)[0], theirs.run(x)[0])


def test_bytes_and_errors() -> None:
    assert on.compile(tiny.convnet(), isolated=Limits(seconds=60)).data == on.compile(tiny.convnet()).data
    with pytest.raises(FormatError, match="<bytes>"):
        on.compile(tiny.convnet()[:200], isolated=True)
    with pytest.raises(ConverterError, match="the sandbox"):
        on.compile(tiny.convnet(), isolated=Limits(memory=64 << 20))


def test_what_is_no_file() -> None:
    with pytest.raises(OptionError, match="isolated is for files"):
        on.compile(object(), isolated=True)
    with pytest.raises(OptionError, match="isolated is for files"):
        on.compile("m.onnx", (1,), isolated=True)


def test_calibration_travels_as_arrays(tmp_path: Path) -> None:
    batches = [
        (np.ones((1, 2), np.float32), np.zeros(3, np.int64)),
        (np.full((1, 2), 2, np.float32), np.ones(3, np.int64)),
    ]
    file = tmp_path / "calibration.npz"
    file.write_bytes(_pack_batches(batches))
    found = compile_child._read_batches(file)
    assert all(
        np.array_equal(a, b) for one, two in zip(batches, found, strict=True) for a, b in zip(one, two, strict=True)
    )
    assert len(np.load(io.BytesIO(_pack_batches([np.ones(2)]))).files) == 1
    with pytest.raises(OptionError, match="by position"):
        _pack_batches([{"x": np.ones(2)}])
