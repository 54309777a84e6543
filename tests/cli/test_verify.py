from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from openneutron.compiler import kernels
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.microcode.decode import decode
from openneutron.microcode.encode import encode_blocks
from openneutron.microcode.graph_op import blocks_of, is_graph_op
from tests.streaming import streaming_convnet


def damage(file: Path) -> None:
    """Change one byte of the weights of a compiled model, with a checksum that fits: only a comparison can tell."""
    kernels.rules()
    model = read_model(file.read_bytes())
    op = next(op for op in model.main.operators if is_graph_op(op))
    blocks = blocks_of(model.main, op, outputs=1)
    program = decode(blocks.microcode, blocks.weights, blocks.kernels)
    changed = dataclasses.replace(program, weights=bytes([program.weights[0] ^ 0x40]) + program.weights[1:])
    for index, data in zip(op.inputs[-3:], (*encode_blocks(changed), blocks.kernels), strict=True):
        model.main.tensors[index].data = np.frombuffer(data, np.uint8).copy()
        model.main.tensors[index].shape = (len(data),)
    file.write_bytes(write_model(model))


@pytest.mark.parametrize("target", ["imxrt700", "imx95"])
def test_an_uncompiled_model_verifies(command, folder: Path, target: str) -> None:
    outcome = command("verify", "convnet.tflite", "--target", target)
    assert outcome.code == 0
    assert "0 LSB in all 4 layers" in outcome.out


def test_a_compiled_model_verifies_against_its_source(command, folder: Path) -> None:
    command("compile", "sandwich.tflite", "-o", "out.tflite", "--optimize", "fast")
    found = json.loads(command("verify", "out.tflite", "--reference", "sandwich.tflite", "--json").out)
    assert found["equal"] and found["first"] is None
    assert [layer["name"] for layer in found["layers"]] == ["total", "out"]
    assert [layer["name"] for layer in found["outputs"]][-2:] == ["out", "wave"]


def test_a_wrong_layer_is_named_and_the_exit_code_is_1(command, folder: Path) -> None:
    command("compile", "convnet.tflite", "-o", "out.tflite")
    damage(folder / "out.tflite")
    outcome = command("verify", "out.tflite", "--reference", "convnet.tflite")
    assert outcome.code == 1
    assert "first conv (conv2d)" in outcome.out
    found = json.loads(command("verify", "out.tflite", "--reference", "convnet.tflite", "--json").out)
    assert found["first"]["name"] == "conv" and found["first"]["sqnr"] is not None


def test_layers_are_dumped_by_name(command, folder: Path) -> None:
    np.save("x.npy", np.zeros((1, 8, 8, 3), np.int8))
    outcome = command("verify", "convnet.tflite", "-i", "x.npy", "--dump", "pool", "--dump", "scores", "-o", "l.npz")
    assert outcome.code == 0
    with np.load("l.npz") as found:
        assert {name: found[name].shape for name in found} == {"pool": (1, 4, 4, 8), "scores": (1, 5)}
    assert command("verify", "convnet.tflite", "--dump", "all", "-o", "l.npz").code == 0
    with np.load("l.npz") as found:
        assert len(found.files) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["out.tflite"], "needs a reference"),
        (["out.tflite", "--reference", "out.tflite"], "no .tflite that is not compiled"),
        (["out.tflite", "--reference", "sandwich.tflite"], "not those of the model it is compared with"),
        (["convnet.tflite", "--reference", "sandwich.tflite"], "--reference is for compiled models"),
        (["floats.tflite"], "nothing of the model runs on the NPU"),
        (["convnet.tflite", "-i", "wrong.npy"], "input 'image' is"),
        (["convnet.tflite", "--dump", "pol"], "no layer 'pol'. Hint: for example pool"),
        (["wrong.npy"], "only .pte, .tflite and .onnx files can be verified"),
    ],
    ids=[
        "no reference",
        "compiled reference",
        "other reference",
        "needless reference",
        "floats",
        "input",
        "dump",
        "kind",
    ],
)
def test_what_cannot_be_verified_is_refused(command, refused, folder: Path, arguments: list[str], message: str) -> None:
    command("compile", "convnet.tflite", "-o", "out.tflite")
    np.save("wrong.npy", np.zeros((2, 2), np.int8))
    assert message in refused("verify", *arguments)


def test_a_stream_is_verified_frame_by_frame(command, folder: Path) -> None:
    Path("wake.tflite").write_bytes(streaming_convnet())
    np.savez("frames.npz", frame=np.random.default_rng(0).integers(-128, 128, (4, 1, 1, 1, 4)).astype(np.int8))
    outcome = command("verify", "wake.tflite", "--stream", "frames.npz", "--dump", "out", "-o", "out.npz")
    assert outcome.code == 0 and "of 4 frames in a row" in outcome.out
    assert np.load("out.npz")["out"].shape[0] == 4
    outcome = command("verify", "wake.tflite", "--stream", "frames.npz", "--input", "frames.npz")
    assert outcome.code == 2 and "--stream and --input" in outcome.err
