from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from openneutron.cli.main import run
from openneutron.sweeps import cluster


def test_a_grid_from_the_command_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "sweep",
        "convnet.tflite",
        "--target",
        "imxrt700,mcxn94x",
        "--fit",
        "none,4K",
        "--workers",
        "1",
        "-o",
        "out",
    ]
    assert run(words) == 0
    text = capsys.readouterr().out
    assert "4 of 4 variants ok, 0 known before; out/index.html" in text and "all that a board runs" in text
    assert "open ms of a LiteRT file are the NPU's alone" in text
    assert {"results.csv", "results.jsonl", "index.html"} <= {file.name for file in Path("out").iterdir()}
    assert run([*words, "--json"]) == 0
    assert [row["fit_bytes"] for row in json.loads(capsys.readouterr().out)] == [None, 4096] * 2


def test_the_process_that_starts_workers_has_imported_nothing_slow(folder: Path) -> None:
    script = (
        "import sys; from openneutron.cli.main import run; from openneutron.sweeps import forking;"
        "slow = {'dask', 'numpy', 'torch'};"
        "forking._method = lambda *given: sys.exit(str(slow & {*sys.modules}) if slow & {*sys.modules} else 7);"
        "run(['sweep', 'cifarnet', '--target', 'imxrt700,mcxn94x', '--workers', '2', '-o', 'out'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 7, done.stderr


def test_a_toml_and_a_variant_that_fails(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("s.toml").write_text(
        '[[model]]\nsource = "convnet.tflite"\n[grid]\ntarget = ["mcxn94x"]\nfit = ["none", 10]\n'
    )
    assert run(["sweep", "s.toml", "--workers", "1", "-o", "out", "--no-reports"]) == 1
    text = capsys.readouterr().out
    assert "1 of 2 variants ok" in text and "convnet.tflite target=mcxn94x fit_bytes=10: failed:" in text
    assert not Path("out", "reports").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing.tflite"], "there is no such file"),
        (["convnet.tflite", "--target", "imxrt7"], "imxrt7"),
        (["convnet.tflite", "--argument", "width=1"], "--argument is for factories"),
        (["nets:make", "--argument", "width"], "--argument is 'width'"),
        (["convnet.tflite", "--workers", "-1"], "--workers"),
        (["convnet.tflite", "--data", "gone.npz"], "gone.npz: there is no such file or folder"),
        (["convnet.tflite", "--data", "zoo"], "no network of the zoo"),
        (["convnet.tflite", "--limit", "5"], "limit is given, and no data"),
        (["convnet.tflite", "--scheduler", "tcp://127.0.0.1:9"], "tcp://127.0.0.1:9: no Dask scheduler answers"),
    ],
)
def test_mistakes_are_one_line(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    message: str,
) -> None:
    monkeypatch.setattr(cluster, "ANSWER_SECONDS", 0.5)
    assert run(["sweep", *words, "-o", "out"]) == 2
    text = capsys.readouterr().err
    assert message in text and text.count("\n") == 1


def test_accuracy_is_a_column_where_there_is_data(command, folder: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez("d.npz", x=rng.uniform(-1, 1, (6, 8, 8, 3)).astype(np.float32), y=rng.integers(0, 5, 6))
    words = ("sweep", "convnet.tflite", "--workers", 1, "--no-reports", "-o", "out")
    assert "accuracy" not in command(*words).out
    found = command(*words, "--data", "d.npz", "--limit", 5)
    assert found.code == 0 and "accuracy" in found.out and "0 known before" in found.out
    (row,) = json.loads(command(*words, "--data", "d.npz", "--limit", 5, "--json").out)
    assert row["samples"] == 5 and 0 <= row["accuracy"] <= 1
