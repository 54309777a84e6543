from __future__ import annotations

import hashlib
import math
from pathlib import Path

import pytest

import openneutron
from openneutron.board.answer import stock_answer
from openneutron.board.interval import LEFT_OUT
from openneutron.board.learn import learn, learn_from
from openneutron.board.ledger import Measurement, append_point
from openneutron.errors import FormatError, OptionError
from openneutron.machine import targets
from tests import tiny

MODELS = {"convnet.tflite": tiny.convnet(), "sandwich.tflite": tiny.sandwich()}


def write_ledger(folder: Path, slower: float = 1.3, **changes: object) -> Path:
    """Two models that take longer than estimated, by the same factor."""
    ledger = folder / "points.toml"
    for name, data in MODELS.items():
        (folder / name).write_bytes(data)
        estimate = stock_answer(data, targets.load("mcxn94x")).milliseconds
        fields = {
            "chip": "mcxn94x", "milliseconds": (slower * estimate,), "sha256": hashlib.sha256(data).hexdigest(), **changes,
        }  # fmt: skip
        append_point(ledger, Measurement(model=name, source="test", **fields))  # type: ignore[arg-type]
    return ledger


def test_each_point_is_estimated_better_with_the_other(tmp_path: Path) -> None:
    lesson = learn_from(write_ledger(tmp_path))
    for known in lesson.points:
        assert known.before == pytest.approx(1 / 1.3 - 1, abs=0.005)
        assert abs(known.after) < abs(known.before)
    assert lesson.learned.errors[: len(LEFT_OUT)] == LEFT_OUT
    assert lesson.learned.errors[len(LEFT_OUT) :] == tuple(math.log1p(one.after) for one in lesson.points)


def test_a_compile_uses_the_points_and_says_so(tmp_path: Path) -> None:
    ledger = str(write_ledger(tmp_path))
    plain = openneutron.compile(tiny.convnet(), target="mcxn94x").report.stock
    taught = openneutron.compile(tiny.convnet(), target="mcxn94x", board_points=ledger).report.stock
    assert plain.milliseconds * 1.1 < taught.milliseconds < plain.milliseconds * 1.4
    assert taught.milliseconds_low < taught.milliseconds < taught.milliseconds_high
    assert "the time is learned from 2 points of points.toml beside the published latencies" in taught.notes
    assert (taught.scratch_bytes, taught.kernel_calls) == (plain.scratch_bytes, plain.kernel_calls)
    other = openneutron.compile(tiny.convnet(), target="imx95", board_points=ledger).report.stock
    assert other.notes[0].startswith("nothing is learned from points.toml")


def test_times_count_at_the_clocks_they_were_measured_with(tmp_path: Path) -> None:
    target = targets.load("mcxn94x")
    half = {"npu_hz": target.clock_hz // 2, "cpu_hz": target.cpu_clock_hz // 2}
    lesson = learn_from(write_ledger(tmp_path, slower=2.0, **half))
    assert [one.before for one in lesson.points] == pytest.approx([0.0, 0.0], abs=0.005)


def test_points_that_teach_nothing_are_named(tmp_path: Path) -> None:
    ledger = write_ledger(tmp_path)
    append_point(ledger, Measurement(model="x.tflite", chip="imx95", source="test", milliseconds=(1.0,)))
    append_point(ledger, Measurement(model="y.tflite", chip="mcxn94x", source="test", arena_bytes=1))
    assert learn_from(ledger).skipped == (
        "point 3 (x.tflite) is of imx95, and times are learned for imxrt700 and mcxn94x",
        "point 4 (y.tflite) has no milliseconds",
    )


def test_a_ledger_that_cannot_be_learned_from_is_refused(tmp_path: Path) -> None:
    ledger = write_ledger(tmp_path)
    (tmp_path / "convnet.tflite").write_bytes(tiny.floats())
    with pytest.raises(OptionError, match=r"convnet.tflite is not the model that was measured"):
        learn(ledger)
    (tmp_path / "convnet.tflite").unlink()
    with pytest.raises(OptionError, match=r"its model 'convnet.tflite' is not there"):
        learn(ledger)
    empty = tmp_path / "other.toml"
    append_point(empty, Measurement(model="y.tflite", chip="mcxn94x", source="test", arena_bytes=1))
    with pytest.raises(OptionError, match=r"no point of this ledger can be learned from.*has no milliseconds"):
        learn(empty)
    text = tmp_path / "text.toml"
    (tmp_path / "text.txt").write_text("no model")
    append_point(text, Measurement(model="text.txt", chip="mcxn94x", source="test", milliseconds=(1.0,)))
    with pytest.raises(FormatError, match=r"text.txt is no LiteRT file"):
        learn(text)


def test_a_point_is_planned_by_the_rules_of_its_converter(tmp_path: Path) -> None:
    errors = []
    for converter in ("1.2.0+0X1c933f1b", "3.2.2", ""):
        (folder := tmp_path / f"by{converter}").mkdir()
        lesson = learn_from(write_ledger(folder, chip="imxrt700", converter=converter))
        errors.append([one.before for one in lesson.points])
    assert errors[0] != errors[1] == errors[2]  # softmax runs on the NPU since 3.0
