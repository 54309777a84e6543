from __future__ import annotations

import dataclasses
import json

import pytest

from openneutron.report.model import Event, Report
from openneutron.report.perfetto import trace
from tests.report.samples import report


def events(found: Report) -> list[dict]:  # type: ignore[type-arg]
    return [row for row in json.loads(trace(found, clock_hz=1_000_000))["traceEvents"] if row["ph"] == "X"]


def test_calls_and_copies_are_on_their_lanes_in_microseconds() -> None:
    both = (Event(0, 0, "array", "conv2d", 0, 8, 0, 200), Event(0, 3, "dma", "copy", 0, 64, 50, 90))
    call, copy = events(dataclasses.replace(report(), events=both))
    assert (call["name"], call["ts"], call["dur"], call["tid"]) == ("conv2d", 0, 200, 1)
    assert call["args"]["layer"] == "conv" and call["args"]["rows"] == "0 to 7"
    assert (copy["ts"], copy["dur"], copy["tid"], copy["args"]["bytes"]) == (50, 40, 2, 64)


def test_graphs_follow_one_another() -> None:
    one, two = (Event(graph, 0, "array", "add", 0, 1, 0, 10) for graph in (0, 1))
    assert [(row["pid"], row["ts"]) for row in events(Report(events=(one, two)))] == [(0, 0), (1, pytest.approx(10))]


def test_lanes_have_names() -> None:
    rows = json.loads(trace(report(), clock_hz=1))["traceEvents"]
    assert {row["args"]["name"] for row in rows if row["name"] == "thread_name"} == {"array (compute)", "copies (DMA)"}
