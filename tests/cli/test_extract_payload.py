from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from openneutron.cli.inputs.blocks import blocks_of_file
from openneutron.machine.native import library_path
from openneutron.microcode.payload import parse_payload
from tests.cli.conftest import Command
from tests.several_ends import several_ends

Refused = Callable[..., str]
INCLUDE = Path(__file__).parents[2] / "runtime" / "include"


@pytest.fixture
def compiled(command: Command, folder: Path) -> Path:
    for name in ("convnet", "sandwich"):
        assert command("compile", f"{name}.tflite", "-o", f"{name}_out.tflite").code == 0
    return folder


def test_the_payload_holds_the_blocks_of_the_graph(command: Command, compiled: Path) -> None:
    outcome = command("extract-payload", "convnet_out.tflite", "-o", "x.bin", "--json")
    assert outcome.code == 0
    size = (compiled / "x.bin").stat().st_size
    where = "convnet_out.tflite, operator 0"
    told = json.loads(outcome.out)
    assert {name: told[name] for name in ("files", "payload_bytes", "where", "notes")} == {
        "files": ["x.bin"],
        "payload_bytes": size,
        "where": where,
        "notes": [],
    }
    payload = parse_payload((compiled / "x.bin").read_bytes(), where="x.bin")
    (blocks,) = blocks_of_file((compiled / "convnet_out.tflite").read_bytes(), "out")
    assert (payload.microcode, payload.weights, payload.kernels) == (blocks.microcode, blocks.weights, blocks.kernels)
    assert (payload.target, payload.converter, payload.input_map, payload.output_map) == (
        "imxrt700",
        "open",
        (0,),
        (0,),
    )


def test_a_payload_goes_through_unchanged(command: Command, compiled: Path) -> None:
    assert command("extract-payload", "convnet_out.tflite", "-o", "x.bin").code == 0
    assert command("extract-payload", "x.bin", "-o", "y.bin").code == 0
    assert (compiled / "x.bin").read_bytes() == (compiled / "y.bin").read_bytes()


def test_one_of_several_delegates_must_be_chosen(command: Command, refused: Refused, compiled: Path) -> None:
    assert "the file has 2 delegates. Hint: choose one" in refused(
        "extract-payload", "sandwich_out.tflite", "-o", "x.bin"
    )
    assert "there is no delegate 2" in refused("extract-payload", "sandwich_out.tflite", "-o", "x.bin", "--delegate", 2)
    assert not (compiled / "x.bin").exists()
    for delegate in (0, 1):
        assert (
            command("extract-payload", "sandwich_out.tflite", "-o", f"{delegate}.bin", "--delegate", delegate).code == 0
        )
    assert (compiled / "0.bin").read_bytes() != (compiled / "1.bin").read_bytes()


def test_c_source_compiles_to_the_same_bytes(command: Command, compiled: Path) -> None:
    np.save("image.npy", np.arange(192, dtype=np.int8).reshape(1, 8, 8, 3))
    assert command("extract-payload", "convnet_out.tflite", "-o", "x.bin").code == 0
    assert command("extract-payload", "convnet_out.tflite", "-o", "net.c", "--inputs", "image.npy").code == 0
    (compiled / "main.c").write_text(
        '#include <stdio.h>\n#include "net.h"\n'
        "int main(void) {\n"
        "    fwrite(net_payload, 1, NET_PAYLOAD_BYTES, stdout);\n"
        "    const uint32_t sizes[] = NET_INPUT_BYTES;\n"
        "    fwrite(net_inputs[0], 1, sizes[0], stdout);\n"
        "    return 0;\n}\n"
    )
    library = library_path()
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", f"-Wl,-rpath,{library.parent}"]
    subprocess.run(["gcc", *flags, "net.c", "main.c", str(library), "-o", "main"], check=True)
    printed = subprocess.run(["./main"], check=True, capture_output=True).stdout
    assert printed == (compiled / "x.bin").read_bytes() + bytes(range(192))


def test_the_header_has_every_size(command: Command, compiled: Path) -> None:
    assert command("extract-payload", "convnet_out.tflite", "-o", "net.c", "--name", "my_net").code == 0
    header = (compiled / "net.h").read_text()
    found = dict(re.findall(r"#define MY_NET_(\w+) (\S+)", header))
    (blocks,) = blocks_of_file((compiled / "convnet_out.tflite").read_bytes(), "out")
    assert found["SCRATCH_BYTES"] == f"{blocks.container.scratch_bytes}u"
    assert found["WEIGHTS_BYTES"] == f"{len(blocks.weights)}u"
    assert (found["INPUT_BYTES"], found["OUTPUT_BYTES"], found["IO_BYTES"]) == ("{192}", "{5}", "208u")
    assert "my_net_inputs" not in header


def test_random_inputs_are_the_seeds(command: Command, compiled: Path) -> None:
    texts = []
    for seed in (0, 0, 1):
        assert command("extract-payload", "convnet_out.tflite", "-o", "net.c", "--random-inputs", seed).code == 0
        texts.append((compiled / "net.c").read_text())
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["convnet.tflite", "-o", "x.bin"], "convnet.tflite: the file holds no Neutron delegate. Hint: compile it"),
        (["missing.pte", "-o", "x.bin"], "missing.pte: there is no such file"),
        (["convnet_out.tflite", "-o", "x.txt"], "x.txt: the name must end in .bin or .c"),
        (["convnet_out.tflite", "-o", "x.bin", "--random-inputs", 0], "are for C source"),
        (["convnet_out.tflite", "-o", "x.c", "--name", "2x"], "'2x' is no name in C"),
        (["convnet_out.tflite", "-o", "x.c", "--inputs", "wrong.npy"], "it must be int8 [1, 8, 8, 3]"),
        (["convnet_out.tflite", "-o", "x.c", "--inputs", "wrong.npy", "--random-inputs", 0], "exclude each other"),
        (["wrong.npy", "-o", "x.bin"], "wrong.npy"),
    ],
    ids=["not compiled", "missing", "suffix", "inputs of bytes", "name", "wrong inputs", "both", "no model"],
)
def test_what_is_wrong_is_said(refused: Refused, compiled: Path, arguments: list[object], message: str) -> None:
    np.save("wrong.npy", np.zeros((1, 3, 8, 8), np.int8))
    assert message in refused("extract-payload", *arguments)
    assert not list(compiled.glob("x.*"))


def test_names_shapes_and_order_are_the_models(command: Command, folder: Path) -> None:
    (folder / "m.tflite").write_bytes(several_ends((1, 0), ("flat", "first", "flat")))
    assert command("compile", "m.tflite", "-o", "out.tflite").code == 0
    outcome = command("extract-payload", "out.tflite", "-o", "net.c", "--random-inputs", 0)
    assert outcome.code == 0 and "output 2 of the model (flat) is output 0 again" in outcome.out
    found = dict(re.findall(r"#define NET_(\w+) (.+)", (folder / "net.h").read_text()))
    assert (found["INPUT_NAMES"], found["OUTPUT_NAMES"]) == ('{"x1", "x0"}', '{"flat", "first"}')
    assert (found["RANK"], found["INPUT_RANKS"], found["OUTPUT_RANKS"]) == ("4u", "{4, 4}", "{4, 4}")
    assert found["INPUT_SHAPES"] == "{{1, 4, 4, 1}, {1, 4, 4, 8}}"
    assert found["OUTPUT_SHAPES"] == "{{1, 2, 2, 8}, {1, 4, 4, 8}}"
    assert (found["INPUT_BYTES"], found["OUTPUT_BYTES"]) == ("{16, 128}", "{32, 128}")


def test_inputs_are_found_by_name(command: Command, refused: Refused, folder: Path) -> None:
    (folder / "m.tflite").write_bytes(several_ends((1, 0), ("sum",)))
    assert command("compile", "m.tflite", "-o", "out.tflite").code == 0
    x0, x1 = np.full((1, 4, 4, 8), 7, np.int8), np.full((1, 4, 4, 1), 9, np.int8)
    np.savez("right.npz", x0=x0, x1=x1)
    assert command("extract-payload", "out.tflite", "-o", "net.c", "--inputs", "right.npz").code == 0
    words = re.findall(r"net_input_(\d)\[\] = \{\s*0x(\w+),", (folder / "net.c").read_text())
    assert words == [("0", "09090909"), ("1", "07070707")]
    np.savez("wrong.npz", x0=x0, other=x1)
    assert "name them as the inputs: x1, x0" in refused(
        "extract-payload", "out.tflite", "-o", "x.c", "--inputs", "wrong.npz"
    )
