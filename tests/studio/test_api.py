"""The calls of the page from first to last, on one small model."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import openneutron as on
from openneutron.analyze.fits import Limits, fits
from openneutron.cli.shared.fitting import CLOSEST
from openneutron.errors import OptionError
from openneutron.machine import targets
from openneutron.project import make
from openneutron.studio.api import judged_targets, label, options_of
from openneutron.studio.server import Studio
from tests import tiny
from tests.studio.conftest import ask, call


@pytest.fixture(scope="module")
def variant(studio: Studio, model: str) -> dict:
    return call(studio, "compile", model=model, options={"target": "mcxn94x"})["result"]


def test_what_the_engine_can_do(studio: Studio) -> None:
    hello = call(studio, "hello")["result"]
    names = [one["name"] for one in hello["chips"]]
    assert names[: len(targets.chips())] == sorted(targets.chips()) and {*names} == {*targets.names()}
    assert [one["name"] for one in hello["chips"] if one["processor"]] == names[len(targets.chips()) :]
    assert hello["torch"] and "cifarnet" in [one["name"] for one in hello["zoo"]]


def test_every_chip_is_judged_as_by_fits(studio: Studio, model: str) -> None:
    rows = call(studio, "fits", model=model)["result"]["rows"]
    wanted = fits([tiny.convnet()], judged_targets(), Limits())
    assert [(row["target"], row["schedule"], row["need"]["sram_bytes"]) for row in rows] == [
        (row.target, row.schedule, row.need.sram_bytes) for row in wanted
    ]


def test_what_helps_is_tried_under_the_pages_limits(studio: Studio, model: str) -> None:
    limits = {"sram": 1024, "flash": 0, "milliseconds": 0}
    rows = call(studio, "help", model=model, chip="mcxn94x", limits=limits)["result"]["rows"]
    assert all(not row["fits"] and row["sram_limit"] == 1024 for row in rows)
    # Where nothing helps, what comes closest and how many were tried.
    helpless = [row for row in rows if all(change["short"] for change in row["changes"])]
    assert helpless and all(len(row["changes"]) <= CLOSEST < row["tried"] for row in helpless)


def test_a_file_that_is_no_model_is_refused_by_its_name_alone(studio: Studio) -> None:
    _, data = ask(f"{studio.address}upload?name=notes.tflite", b"nothing")
    error = call(studio, "fits", model=json.loads(data)["result"]["id"])["error"]
    assert error["text"] == "notes.tflite, byte 0: the file has 7 bytes, too few for a model"


def test_a_compile_is_the_command_lines(studio: Studio, variant: dict) -> None:
    assert (variant["label"], variant["kind"], variant["target"]) == ("mcxn94x", "tflite", "mcxn94x")
    names = [one["name"] for one in call(studio, "files", variant=variant["id"])["result"]]
    assert names[0] == "convnet_mcxn94x.tflite" and "convnet_mcxn94x_report.html" in names
    status, data = ask(f"{studio.address}file/{variant['id']}/convnet_mcxn94x.tflite")
    assert status == 200 and data == on.compile(tiny.convnet(), target="mcxn94x", name="convnet.tflite").tflite
    assert ask(f"{studio.address}file/{variant['id']}/program")[0] == 404


def test_a_project_is_that_of_the_command(studio: Studio, model: str, tmp_path: Path) -> None:
    known = call(studio, "boards")["result"]
    takes = {one["name"]: one["platforms"] for one in known["boards"]}
    assert takes["mps2-an505"] == ["cmake"] and takes["frdmmcxn947"] == known["platforms"]
    mine = call(studio, "compile", model=model, options={"target": "cortex_m33"})["result"]["id"]
    made = call(studio, "project", variant=mine, platform="cmake", board="mps2-an505")["result"]
    assert 0 < made["flash"] < made["flash_there"] and 0 < made["ram"] < made["ram_there"]
    (name,) = (one["name"] for one in call(studio, "files", variant=mine)["result"] if one["name"].endswith(".zip"))
    status, data = ask(f"{studio.address}file/{mine}/{name}")
    assert status == 200 and name == "convnet_cortex_m33_project.zip"
    program = on.compile(tiny.convnet(), target="cortex_m33", name="convnet.tflite")
    command = "openneutron project convnet.tflite --for cmake --board mps2-an505"
    wanted = make(program, platform="cmake", board="mps2-an505", command=command)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert {one: archive.read(one) for one in archive.namelist()} == wanted.files
    assert "--for cmake" in call(studio, "project", variant=mine, platform="no", board="mps2-an505")["error"]["text"]


def test_models_and_variants_are_found_again(studio: Studio, model: str, variant: dict) -> None:
    found = next(one for one in call(studio, "models")["result"] if one["id"] == model)
    assert variant["id"] in [one["id"] for one in found["variants"]]


def test_changes_carry_options_that_compile(studio: Studio, model: str, variant: dict) -> None:
    made = call(studio, "changes", variant=variant["id"])["result"]
    options = [one["option"] for one in made["changes"] if one["option"]]
    assert options
    changed = call(studio, "compile", model=model, options=variant["options"], change=options[0])["result"]
    assert changed["id"] != variant["id"]
    both = call(studio, "pair", first=variant["id"], second=changed["id"])["result"]
    assert both["lines"] and "<html" in both["html"]
    assert "What to change" in call(studio, "report", variant=variant["id"])["result"]["html"]


@pytest.mark.parametrize("given", ["random", "array", "floats"])
def test_a_run_is_exact(studio: Studio, variant: dict, given: str) -> None:
    inputs = ""
    values = np.linspace(-1, 1, 8 * 8 * 3).reshape(1, 8, 8, 3)
    if given != "random":
        stream = io.BytesIO()
        np.savez(stream, arr_0=(values * 127).astype(np.int8) if given == "array" else values.astype(np.float32))
        inputs = base64.b64encode(stream.getvalue()).decode()
    found = call(studio, "run", variant=variant["id"], inputs=inputs)["result"]
    assert found["check"]["differing"] == 0 and found["check"]["elements"] > 0 and found["cycles"] > 0
    assert len(found["outputs"][0]["values"]) == found["outputs"][0]["size"]


def test_a_compiled_file_is_opened_and_run_without_a_check(studio: Studio, variant: dict) -> None:
    wrong = call(studio, "run", variant=variant["id"], inputs="@")["error"]
    assert "arrived damaged" in wrong["text"]
    _, data = ask(f"{studio.address}upload?name=out.tflite", on.compile(tiny.convnet(), target="mcxn94x").tflite)
    opened = call(studio, "open", model=json.loads(data)["result"]["id"])["result"]
    assert opened["contents"]["graphs"][0]["target"] == "mcxn94x"
    assert call(studio, "run", variant=opened["id"])["result"]["check"] is None
    assert "has no report" in call(studio, "report", variant=opened["id"])["error"]["text"]


def test_an_exported_program_waits_for_trust(studio: Studio) -> None:
    _, data = ask(f"{studio.address}upload?name=model.pt2", b"something else")
    model = json.loads(data)["result"]
    assert model["untrusted"]
    assert "run code that is hidden" in call(studio, "fits", model=model["id"])["error"]["text"]
    call(studio, "trust", model=model["id"])
    assert "no exported program" in call(studio, "fits", model=model["id"])["error"]["text"]
    call(studio, "remove", model=model["id"])


def test_a_damaged_file_is_a_sentence(studio: Studio) -> None:
    _, data = ask(f"{studio.address}upload?name=broken.tflite", tiny.convnet()[:200])
    error = call(studio, "fits", model=json.loads(data)["result"]["id"])["error"]
    assert not error["bug"] and "broken.tflite" in error["text"]


def test_options_of_a_change() -> None:
    assert options_of("--fit 56K --int8-io --not-delegate a --not-delegate b") == {
        "fit_bytes": 57344,
        "int8_io": True,
        "operators_not_to_delegate": ("a", "b"),
    }
    for wrong, message in (("--output x", "no option of a compile"), ("--fit", "needs a value"), ("--fit x", "--fit")):
        with pytest.raises(OptionError, match=message):
            options_of(wrong)
    assert label({"target": "imx95", "fit_bytes": 9, "int8_io": True}) == "imx95, --fit 9, --int8-io"


def test_options_that_name_files_or_run_code_are_not_for_the_page(studio: Studio, model: str) -> None:
    for change in ("--quantization /etc/passwd", "--converter nxp", "--trust"):
        assert "is not for the page" in call(studio, "compile", model=model, change=change)["error"]["text"]
