"""Safetensors files: weights as they are, mapped; damaged files and other models' are refused in a sentence."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import openneutron as on
from openneutron.errors import FormatError, OpenNeutronError, OptionError
from openneutron.executorch.capture.weights import load_weights, read_tensors

NAMES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16", torch.int8: "I8", torch.int64: "I64"}


def stored(tensors: dict[str, torch.Tensor], **changed: Any) -> bytes:
    """A safetensors file; `changed` replaces fields of the first tensor."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    content = b""
    for name, tensor in tensors.items():
        data = tensor.contiguous().view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
        place = [len(content), len(content) + len(data)]
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": place}
        content += data
    header[next(iter(tensors))].update(changed)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + content


class Tied(nn.Module):
    """An embedding whose table is also the matrix of the last layer, and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.middle = nn.Embedding(16, 8), nn.Linear(8, 8)
        self.head = nn.Linear(8, 16, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("shift", torch.zeros(8))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.middle(self.embedding(tokens)) + self.shift)


def given(dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    torch.manual_seed(3)
    shapes = {"embedding.weight": (16, 8), "middle.weight": (8, 8), "middle.bias": (8,), "shift": (8,)}
    return {name: torch.randn(shape).to(dtype) for name, shape in shapes.items()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("device", ["meta", "cpu"])
def test_weights_of_a_file_are_in_the_module(dtype: torch.dtype, device: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(stored(given(dtype)))
    with torch.device(device):
        model = Tied()
    assert on.load_weights(model, path) is model
    assert model.head.weight is model.embedding.weight
    for name, value in given(dtype).items():
        assert torch.equal(model.state_dict()[name], value.float())
    assert isinstance(model.middle.bias, nn.Parameter) and not isinstance(model.shift, nn.Parameter)
    program = on.compile(model.eval(), (torch.tensor([1, 2]),), calibration=[(torch.tensor([at, 3]),) for at in range(8)]) \
        if device == "meta" and dtype is torch.float32 else None  # fmt: skip
    assert program is None or program.report.totals.neutron_graphs == 1


def test_tensors_are_mapped_and_the_file_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(stored({**given(), "empty": torch.zeros(0, 3)}))
    before = path.read_bytes()
    tensors = read_tensors(path)
    tensors["shift"] += 1
    assert tensors["empty"].shape == (0, 3) and path.read_bytes() == before


def test_several_files_with_an_index_and_other_names(tmp_path: Path) -> None:
    parts = [{f"model.{name}": value} for name, value in given().items()]
    index = {}
    for at, part in enumerate(parts):
        (tmp_path / f"part-{at}.safetensors").write_bytes(stored(part))
        index |= dict.fromkeys(part, f"part-{at}.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    model = load_weights(Tied(), tmp_path, rename=lambda name: name.removeprefix("model."))
    assert torch.equal(model.state_dict()["shift"], given()["shift"])
    (tmp_path / "part-2.safetensors").unlink()
    with pytest.raises(FormatError, match=r"names 'part-2.safetensors', which is not beside it"):
        load_weights(Tied(), tmp_path)


FILE = stored(given())
DAMAGED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "has 0 bytes"),
    "text": (b"<!DOCTYPE html><html>", "byte 0: its header would have"),
    "cut": (FILE[:-5], "its end is missing"),
    "longer": (FILE + b"more", "something follows its last tensor"),
    "no JSON": (FILE[:8] + b"?" + FILE[9:], "byte 8: its header is no JSON"),
    "a list": (struct.pack("<Q", 2) + b"[]", "no JSON object"),
    "type": (stored(given(), dtype="F3"), "'embedding.weight': its type is 'F3'"),
    "type of JSON": (stored(given(), dtype=["F32"]), "its type is"),
    "shape": (stored(given(), shape=[16, -8]), r"its shape is \[16, -8\]"),
    "size": (stored(given(), shape=[16, 9]), "it takes 512 bytes, F32 of shape .* needs 576"),
    "place": (stored(given(), data_offsets=[4, 516]), "begins at byte 4, the one before it ends at 0"),
    "pickle": (b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00.", "its header would have"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_are_refused_with_the_place(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    data, message = DAMAGED[name]
    path.write_bytes(data)
    with pytest.raises(FormatError, match=f"model.safetensors.*{message}"):
        read_tensors(path)


def test_every_cut_and_every_changed_header_byte_is_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    for at in range(0, 330, 3):
        for data in (FILE[:at], FILE[:at] + bytes([FILE[at] ^ 0x11]) + FILE[at + 1 :]):
            path.write_bytes(data)
            try:
                read_tensors(path)
            except OpenNeutronError:
                continue


def without(name: str) -> dict[str, torch.Tensor]:
    return {key: value for key, value in given().items() if key != name}


WRONG: dict[str, tuple[dict[str, torch.Tensor], str]] = {
    "missing": (without("shift"), "no tensor for shift"),
    "spare": ({**given(), "lm_head.weight": torch.zeros(1)}, "the module has no lm_head.weight"),
    "shape": ({**given(), "shift": torch.zeros(9)}, r"'shift': its shape is \[9\], the module's \[8\]"),
    "type": (
        {**given(), "shift": torch.zeros(8, dtype=torch.int64)},
        "it is torch.int64, the module's is torch.float32",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_other_models_weights_are_refused_and_nothing_changes(name: str, tmp_path: Path) -> None:
    tensors, message = WRONG[name]
    path = tmp_path / "model.safetensors"
    path.write_bytes(stored(tensors))
    model = Tied()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    with pytest.raises(FormatError, match=message):
        load_weights(model, path)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


def test_files_that_are_not_there_and_values_that_no_file_has(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no such file"):
        load_weights(Tied(), tmp_path / "a.safetensors")
    with pytest.raises(OptionError, match=r"no model\.safetensors"):
        load_weights(Tied(), tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(stored(given()))
    with torch.device("meta"):
        model = Tied()
        model.register_buffer("table", torch.zeros(3), persistent=False)
    with pytest.raises(OptionError, match="table: the module computes these itself"):
        load_weights(model, path)
