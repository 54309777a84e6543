from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from openneutron.cli.compare import _describe_cpu_operators
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from tests.cli.conftest import Command
from tests.compat.nxp_file import converted


def test_a_model_beside_what_nxp_made_of_it(folder: Path, command: Command) -> None:
    original = read_model(Path("convnet.tflite").read_bytes())
    last = len(original.main.operators) - 1
    Path("nxp.tflite").write_bytes(write_model(converted(original, left=[last])))
    outcome = command("compare", "convnet.tflite", "nxp.tflite", "--json")
    ours, theirs = json.loads(outcome.out)
    assert (ours["made_by"], theirs["made_by"]) == ("OpenNeutron", "NXP")
    assert (ours["operators_converted"], theirs["operators_converted"]) == (last + 1, last)
    assert (theirs["scratch_bytes"], theirs["weights_bytes"], theirs["kernel_calls"]) == (256, 64, 3)
    assert ours["cycles"] > 0 and theirs["cycles"] is None
    table = command("compare", "convnet.tflite", "nxp.tflite").out
    assert "scratch bytes" in table and "256" in table and "SOFTMAX" in table


def test_two_compiled_files(folder: Path, command: Command) -> None:
    for target in ("imxrt700", "mcxn94x"):
        command("compile", "convnet.tflite", "-o", f"{target}.tflite", "--target", target)
    sides = json.loads(command("compare", "imxrt700.tflite", "mcxn94x.tflite", "--json").out)
    assert [side["target"] for side in sides] == ["imxrt700", "mcxn94x"]
    assert sides[0]["cycles"] < sides[1]["cycles"] and sides[0]["operators_converted"] is None
    same = command("compare", "imxrt700.tflite", "imxrt700.tflite").out
    assert same.count("1.00x") >= 6


def test_one_model_on_two_targets_is_compiled_for_both(folder: Path, command: Command) -> None:
    sides = json.loads(
        command("compare", "convnet.tflite", "--target", "imxrt700", "--target", "mcxn94x", "--json").out
    )
    assert [side["target"] for side in sides] == ["imxrt700", "mcxn94x"]
    assert sides[0]["operators_converted"] == sides[1]["operators_converted"] == 5
    for side, target in zip(sides, ("imxrt700", "mcxn94x"), strict=True):
        assert (
            side["cycles"]
            == json.loads(command("compile", "convnet.tflite", "--target", target, "--json").out)["totals"]["cycles"]
        )


def test_two_models_are_compiled_each_for_its_target(folder: Path, command: Command) -> None:
    sides = json.loads(
        command(
            "compare", "convnet.tflite", "sandwich.tflite", "--target", "imx95", "--target", "mcxn94x", "--json"
        ).out
    )
    assert [(side["file"], side["neutron_graphs"]) for side in sides] == [
        ("convnet.tflite for imx95, compiled now", 1),
        ("sandwich.tflite for mcxn94x, compiled now", 2),
    ]


def test_what_cannot_be_compared(folder: Path, refused: Callable[..., str]) -> None:
    assert "only one to compare" in refused("compare", "convnet.tflite")
    assert "there are 3 to compare" in refused("compare", "convnet.tflite", "convnet.tflite", "convnet.tflite")
    assert "nothing of it runs on the NPU" in refused("compare", "convnet.tflite", "floats.tflite")
    assert "no such file" in refused("compare", "none.tflite", "convnet.tflite")
    assert "unknown target" in refused("compare", "convnet.tflite", "--target", "imxrt700", "--target", "z80")


def test_conversions_at_the_border_are_counted_not_listed() -> None:
    ends = {"quantized_decomposed::quantize_per_tensor.out": 1, "quantized_decomposed::dequantize_per_tensor.out": 2}
    assert _describe_cpu_operators({"aten::sin.out": 2, **ends}) == "aten::sin.out x2, 3 conversions from or to float"
    assert _describe_cpu_operators({}) == ""
