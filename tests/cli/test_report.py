from __future__ import annotations

import json
from pathlib import Path

from openneutron.report.model import from_json


def test_a_report_of_a_litert_file_has_what_ifs_that_were_compiled(command, folder: Path) -> None:
    outcome = command("report", "convnet.tflite", "-o", "r.html", "--json")
    assert outcome.code == 0
    report = from_json(outcome.out)
    assert {"--optimize fast", "--target imx95", "--target mcxn94x"} <= {one.option for one in report.what_ifs}
    other = json.loads(command("compile", "convnet.tflite", "--target", "mcxn94x", "--json").out)["totals"]
    what_if = next(one for one in report.what_ifs if one.option == "--target mcxn94x")
    assert (what_if.cycles, what_if.peak_bytes) == (other["cycles"], other["peak_bytes"])
    assert "convnet.tflite" in (folder / "r.html").read_text()


def test_a_saved_report_becomes_the_same_page(command, folder: Path) -> None:
    (folder / "r.json").write_text(command("report", "convnet.tflite", "--json", "-o", "a.html").out)
    outcome = command("report", "r.json", "-o", "b.html")
    assert outcome.code == 0 and outcome.out.startswith("b.html: ")
    assert (folder / "a.html").read_bytes() == (folder / "b.html").read_bytes()


def test_two_reports_make_one_page(command, folder: Path, refused) -> None:
    (folder / "r.json").write_text(command("compile", "convnet.tflite", "--target", "mcxn94x", "--json").out)
    outcome = command("report", "r.json", "convnet.tflite", "-o", "both.html", "--no-accuracy")
    assert outcome.code == 0 and outcome.out.startswith("both.html: ")
    text = (folder / "both.html").read_text()
    assert "for mcxn94x" in text and "for imxrt700" in text and "logits" in text
    assert "--json is for one report" in refused("report", "r.json", "r.json", "--json")


def test_without_what_ifs_nothing_is_compiled_again(command, folder: Path) -> None:
    assert from_json(command("report", "sandwich.tflite", "--no-what-if", "--json").out).what_ifs == ()
    assert list(folder.glob("*.html")) == []
    assert command("report", "sandwich.tflite", "--no-what-if").code == 0
    assert "operator SIN has no kernel" in (folder / "sandwich_report.html").read_text()


def test_what_cannot_be_reported_is_refused(refused, folder: Path) -> None:
    (folder / "bad.json").write_text("{}")
    (folder / "binary.json").write_bytes(b"\xff\xfe")
    assert "report version None" in refused("report", "bad.json")
    assert "this is no text" in refused("report", "binary.json")
    assert "no such file" in refused("report", "gone.tflite")
    assert "must end in .html" in refused("report", "convnet.tflite", "-o", "r.pdf")
