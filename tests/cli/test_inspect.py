from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from openneutron.litert import read_model, write_model
from openneutron.litert.flexbuffer import encode_map, read_map
from tests import tiny
from tests.cli.conftest import Command
from tests.compat import nxp_file

Refused = Callable[..., str]


def test_a_converted_model_shows_its_graph(command: Command, folder: Path) -> None:
    assert command("compile", "convnet.tflite", "-o", "out.tflite").code == 0
    text = command("inspect", "out.tflite").out
    for wanted in (
        "LiteRT model",
        "image: int8 1x8x8x3 (scale 0.0078125, zero point 0)",
        "operators: NeutronGraph",
        "NeutronGraph by OpenNeutron 0.1.0 for imxrt700",
        "conv2d x1",
    ):
        assert wanted in text


def test_attributes_are_shown_and_compared_with_the_microcode(command: Command, folder: Path) -> None:
    assert command("compile", "convnet.tflite", "-o", "out.tflite").code == 0
    honest = command("inspect", "out.tflite")
    assert "attributes: calls 4, converter OpenNeutron 0.1.0" in honest.out.replace("\n", " ")
    assert "the microcode has" not in honest.out
    model = read_model((folder / "out.tflite").read_bytes())
    (op,) = model.main.operators
    op.custom_options = encode_map(read_map(op.custom_options) | {"target": "imx95", "note": "x"})
    (folder / "forged.tflite").write_bytes(write_model(model))
    notes = json.loads(command("inspect", "forged.tflite", "--json").out)["notes"]
    assert [note.partition(": ")[2] for note in notes] == [
        "attribute note is x, the microcode has no such figure",
        "attribute target is imx95, the microcode has imxrt700",
    ]


def test_json_has_the_same_figures_as_the_report(command: Command, folder: Path) -> None:
    totals = json.loads(command("compile", "convnet.tflite", "-o", "out.tflite", "--json").out)["totals"]
    (graph,) = json.loads(command("inspect", "out.tflite", "--json").out)["graphs"]
    for ours, theirs in (("scratch_bytes", "scratch_bytes"), ("weights_bytes", "weight_bytes")):
        assert graph[ours] == totals[theirs]
    assert graph["microcode_bytes"] == totals["microcode_bytes"]
    assert (graph["made_by"], graph["target"]) == ("open", "imxrt700")


def test_an_unconverted_model_shows_its_operators(command: Command, folder: Path) -> None:
    assert (
        "operators: CONV_2D, MAX_POOL_2D, RESHAPE, FULLY_CONNECTED, SOFTMAX" in command("inspect", "convnet.tflite").out
    )


@pytest.mark.parametrize("profiling", [False, True], ids=["plain", "profiling"])
def test_a_file_of_nxps_converter_is_recognised(command: Command, folder: Path, profiling: bool) -> None:
    model = nxp_file.converted(read_model(tiny.convnet()), profiling=profiling)
    (folder / "theirs.tflite").write_bytes(write_model(model))
    outcome = command("inspect", "theirs.tflite")
    assert outcome.code == 0
    assert f"by NXP, version 0x{nxp_file.VERSION_WORD:08X}" in outcome.out
    assert "only NXP's runtime can run it" in outcome.out
    assert "scratch 256" in outcome.out


def test_a_file_of_nxps_converter_does_not_run_and_says_why(refused: Refused, folder: Path) -> None:
    (folder / "theirs.tflite").write_bytes(write_model(nxp_file.converted(read_model(tiny.convnet()))))
    for verb in ("run", "disasm"):
        assert "only NXP's runtime runs it" in refused(verb, "theirs.tflite")


def test_microcode_alone_is_enough(command: Command, folder: Path) -> None:
    from openneutron.cli.inputs.blocks import blocks_of_file

    assert command("compile", "convnet.tflite", "-o", "out.tflite").code == 0
    (blocks,) = blocks_of_file((folder / "out.tflite").read_bytes(), "out.tflite")
    (folder / "code.bin").write_bytes(blocks.microcode)
    assert "Neutron microcode" in command("inspect", "code.bin").out
    whole, alone = command("disasm", "out.tflite").out, command("disasm", "code.bin").out
    assert [line for line in whole.splitlines() if line[0] != ";"] == [
        line for line in alone.splitlines() if line[0] != ";"
    ]


@pytest.mark.parametrize("verb", ["inspect", "disasm"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no .pte, no .tflite, no Neutron payload and no microcode"),
        (b"hello world, this is text" * 9, "no .pte, no .tflite"),
        (b"nMCd" + bytes(40), "too few for a header"),
        (b"\x1c\0\0\0TFL3" + bytes(300), "file"),
        (b"\x1c\0\0\0ET12" + bytes(300), "vtable at byte 28 has the impossible length 0"),
    ],
    ids=["empty", "text", "microcode cut off", "broken tflite", "broken pte"],
)
def test_what_cannot_be_read_is_named(refused: Refused, folder: Path, verb: str, content: bytes, message: str) -> None:
    (folder / "file").write_bytes(content)
    assert message in refused(verb, "file")


def test_a_changed_byte_of_the_weights_is_found(refused: Refused, command: Command, folder: Path) -> None:
    assert command("compile", "convnet.tflite", "-o", "out.tflite").code == 0
    data = bytearray((folder / "out.tflite").read_bytes())
    from openneutron.cli.inputs.blocks import blocks_of_file

    (blocks,) = blocks_of_file(bytes(data), "out.tflite")
    data[data.index(blocks.weights) + 3] ^= 1
    (folder / "bad.tflite").write_bytes(data)
    for verb in ("inspect", "disasm", "run"):
        assert "checksum" in refused(verb, "bad.tflite")


def test_an_exported_program_is_named_with_the_way_in(refused: Refused, folder: Path) -> None:
    (folder / "m.pt2").write_bytes(b"PK\x03\x04 and so on")
    said = refused("inspect", "m.pt2")
    assert "m.pt2: this is an exported program of PyTorch" in said and "openneutron compile m.pt2 --trust" in said


@pytest.mark.parametrize("int8_io", [True, False])
def test_int8_ends_of_a_program_have_their_quantization(command: Command, folder: Path, int8_io: bool) -> None:
    import torch

    import openneutron as on

    torch.manual_seed(0)
    inputs = (torch.rand(1, 2, 6, 5), torch.rand(1, 3))

    class Two(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.linear = torch.nn.Conv2d(2, 4, 3), torch.nn.Linear(3, 5)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return self.linear(y), self.conv(x)

    program = on.compile(Two(), inputs, calibration=[inputs], int8_io=int8_io, quality="plain")
    program.save(folder / "two.pte")
    found = json.loads(command("inspect", "two.pte", "--json").out)
    shown = [one["quantization"] for one in (*found["inputs"], *found["outputs"])]
    if not int8_io:
        assert shown == [""] * 4
        return
    told = [re.search(r"scale (\S+) and zero point (\S+)$", note) for note in program.report.notes]
    wanted = [(float(one[1]), int(one[2])) for one in told if one]
    read = [re.fullmatch(r"scale (\S+), zero point (\S+)", text) for text in shown]
    assert len(wanted) == 4 and sorted((float(one[1]), int(one[2])) for one in read if one) == [
        (pytest.approx(scale, rel=1e-5), zero) for scale, zero in sorted(wanted)
    ]
    assert [float(one[1]) for one in read[:2] if one] == [pytest.approx(scale, rel=1e-5) for scale, _ in wanted[:2]]
