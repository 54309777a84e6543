from __future__ import annotations

import io
import lzma
from pathlib import Path
from typing import Any

import pytest
import torch

from openneutron.errors import FormatError, OpenNeutronError, OptionError
from openneutron.executorch.capture.samples import load_samples

IMAGES = torch.arange(2 * 3 * 4 * 4, dtype=torch.float32).reshape(2, 3, 4, 4)
EXAMPLES = (torch.zeros(1, 3, 4, 4),)


def saved(path: Path, content: Any) -> Path:
    buffer = io.BytesIO()
    torch.save(content, buffer)
    path.write_bytes(lzma.compress(buffer.getvalue()) if path.suffix == ".xz" else buffer.getvalue())
    return path


@pytest.mark.parametrize("name", ["images.pt", "images.xz"])
@pytest.mark.parametrize(
    "content",
    [IMAGES, list(IMAGES), list(IMAGES[:, None]), [(image, 7) for image in IMAGES], list(IMAGES.double())],
    ids=["tensor", "list", "batched", "labelled", "double"],
)
def test_samples_come_out_as_the_model_takes_them(tmp_path: Path, name: str, content: Any) -> None:
    found = load_samples(saved(tmp_path / name, content), EXAMPLES)
    assert [len(sample) for sample in found] == [1, 1]
    assert all(x.dtype == torch.float32 and torch.equal(x, i[None]) for (x,), i in zip(found, IMAGES, strict=True))


def test_several_inputs(tmp_path: Path) -> None:
    file = saved(tmp_path / "pairs.pt", [(IMAGES[:1], torch.ones(1, 5), 3)])
    ((first, second),) = load_samples(file, (EXAMPLES[0], torch.zeros(1, 5)))
    assert torch.equal(first, IMAGES[:1]) and torch.equal(second, torch.ones(1, 5))


@pytest.mark.parametrize(
    "content, part",
    [
        ({"images": IMAGES}, "it holds a dict"),
        ([], "it holds a list of 0"),
        ([IMAGES[0], 3], "sample 1: it is a int where the model has 1 inputs"),
        ([("cat", 3)], "sample 0: it holds a str where an input belongs"),
        (IMAGES[:, :, :2], r"sample 0: its shape is \[3, 2, 4\], the model takes \[1, 3, 4, 4\]"),
    ],
    ids=["dict", "empty", "number", "text", "shape"],
)
def test_other_content_is_named(tmp_path: Path, content: Any, part: str) -> None:
    with pytest.raises(FormatError, match=part):
        load_samples(saved(tmp_path / "images.pt", content), EXAMPLES)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="there is no such file"):
        load_samples(tmp_path / "gone.pt", EXAMPLES)
    for name in ("text.pt", "text.xz", "empty.pt"):
        (tmp_path / name).write_bytes(b"" if name == "empty.pt" else b"no archive")
        with pytest.raises(OpenNeutronError, match=r"not what torch\.save writes"):
            load_samples(tmp_path / name, EXAMPLES)
    file = saved(tmp_path / "whole.pt", IMAGES)
    file.write_bytes(file.read_bytes()[:400])
    with pytest.raises(FormatError, match=r"not what torch\.save writes"):
        load_samples(file, EXAMPLES)


def test_no_code_is_unpickled(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"not what torch\.save writes"):
        load_samples(saved(tmp_path / "code.pt", [Path("x")]), EXAMPLES)


def test_nobody_is_told_to_load_without_checks(tmp_path: Path) -> None:
    """As torch's own text does of any file that it does not know."""
    file = tmp_path / "model.tflite"
    file.write_bytes(b"\x1c\0\0\0TFL3" * 20)
    with pytest.raises(
        FormatError, match=r"it is not what torch.save writes \(it holds something other than tensors\)"
    ) as found:
        load_samples(file, EXAMPLES)
    assert "weights_only" not in str(found.value)
