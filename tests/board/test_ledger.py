"""Ledgers of measurements: read, written, appended to, and refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from openneutron.board.ledger import Measurement, Prediction, append_point, point_text, read_ledger
from openneutron.errors import FormatError, OpenNeutronError

POINT = 'model = "a.tflite"\nchip = "imxrt700"\nsource = "my desk"\n'
FULL = Measurement(
    model="a.tflite",
    chip="mcxn94x",
    source='a "log"\n',
    milliseconds=(1.5, 2.0, 1.625),
    date="2026-11-19",
    sha256="ab" * 32,
    converter="3.0.0",
    npu_hz=150_000_000,
    arena_bytes=44_768,
    fetch_constants=True,
    layers={"conv 1": 0.25},
    predicted=Prediction("2026-11-20", 1.6, 1.4, 1.8, {"arena_bytes": 44_764}),
)


def _written(folder: Path, text: str) -> Path:
    path = folder / "points.toml"
    path.write_text(text, "utf-8")
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    assert read_ledger(_written(tmp_path, point_text(FULL))) == (FULL,)
    assert FULL.time == 1.625


def test_points_are_appended_and_the_rest_of_the_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "points.toml"
    append_point(path, FULL)
    before = path.read_text("utf-8") + "# mine\n"
    path.write_text(before, "utf-8")
    other = Measurement("b.tflite", "imx95", "a friend", (3.0,))
    append_point(path, other)
    assert path.read_text("utf-8").startswith(before)
    assert read_ledger(path) == (FULL, other)


def test_a_number_and_a_date_need_no_list_and_no_quotes(tmp_path: Path) -> None:
    (point,) = read_ledger(_written(tmp_path, f"[[point]]\n{POINT}milliseconds = 2\ndate = 2026-11-19\n"))
    assert (point.milliseconds, point.time, point.date) == ((2.0,), 2.0, "2026-11-19")


REFUSED = {
    "no TOML": ("[[point", "no TOML"),
    "unknown table": ("[[points]]\n", "unknown key 'points'"),
    "not a list": ("point = 3\n", "not a list of tables"),
    "no chip": ('[[point]]\nmodel = "a"\n', "chip is missing"),
    "nothing measured": (f"[[point]]\n{POINT}", "nothing is measured"),
    "unknown key": (f"[[point]]\n{POINT}speed = 1\n", "unknown key 'speed'"),
    "negative": (f"[[point]]\n{POINT}milliseconds = [1.0, -2.0]\n", "milliseconds is"),
    "not a number": (f"[[point]]\n{POINT}milliseconds = nan\n", "milliseconds is"),
    "size as text": (f'[[point]]\n{POINT}arena_bytes = "40K"\n', "arena_bytes is '40K'"),
    "text as number": (f"[[point]]\n{POINT}milliseconds = 1.0\nconverter = 3.1\n", "converter is 3.1"),
    "runtime": (f'[[point]]\n{POINT}milliseconds = 1.0\nruntime = "onnx"\n', "runtime is 'onnx'"),
    "switch": (f"[[point]]\n{POINT}milliseconds = 1.0\nfetch_constants = 1\n", "fetch_constants is 1"),
    "layers": (f"[[point]]\n{POINT}milliseconds = 1.0\nlayers = [1.0]\n", "layers is"),
    "prediction without date": (f"[[point]]\n{POINT}milliseconds = 1.0\npredicted.arena_bytes = 1\n", "predicted is"),
    "prediction of what": (
        f'[[point]]\n{POINT}milliseconds = 1.0\npredicted = {{ date = "2026-01-01", heat = 1 }}\n',
        "unknown key 'predicted.heat'",
    ),
    "prediction without interval": (
        f'[[point]]\n{POINT}milliseconds = 1.0\npredicted = {{ date = "2026-01-01", milliseconds = 1.0 }}\n',
        "predicted.milliseconds is 1.0",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(tmp_path: Path, name: str) -> None:
    text, said = REFUSED[name]
    with pytest.raises(FormatError, match=r"points\.toml") as caught:
        read_ledger(_written(tmp_path, text))
    assert said in str(caught.value)


def test_nothing_is_appended_to_a_file_that_is_no_ledger(tmp_path: Path) -> None:
    path = _written(tmp_path, "title = 1\n")
    with pytest.raises(OpenNeutronError):
        append_point(path, FULL)
    assert path.read_text("utf-8") == "title = 1\n"
