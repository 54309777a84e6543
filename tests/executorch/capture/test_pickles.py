"""The scan lets through what torch writes, whatever the weights are, and nothing that names a function."""

from __future__ import annotations

import io
import zipfile

import pytest
import torch

from openneutron.errors import FormatError
from openneutron.executorch.capture.pickles import scan


def zipped(content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        made.writestr("data", content)
    return stream.getvalue()


@pytest.mark.parametrize("dtype", [torch.float32, torch.int8, torch.bool, torch.bfloat16, torch.complex64])
def test_tensors_of_every_type_pass(dtype: torch.dtype) -> None:
    stream = io.BytesIO()
    torch.save({"x": (torch.ones(3, dtype=dtype), torch.nn.Parameter(torch.ones(2)), torch.Size([1]))}, stream)
    scan(stream.getvalue(), where="x")
    scan(zipped(stream.getvalue()), where="x")


def test_numbers_are_no_pickles() -> None:
    generator = torch.Generator().manual_seed(0)
    for _ in range(200):
        scan(zipped(torch.randn(64, generator=generator).numpy().tobytes()), where="x")


@pytest.mark.parametrize(
    "content", [b"cos\nsystem\n.", b"N.cos\nsystem\n.", b"cos\nsystem\n\xff", b"(S'x'\nios\nsystem\n."]
)
def test_functions_do_not(content: bytes) -> None:
    with pytest.raises(FormatError, match="could run any code"):
        scan(zipped(content), where="x")


def test_what_is_no_archive() -> None:
    with pytest.raises(FormatError, match="no exported program"):
        scan(b"PK\x03\x04 and then nothing", where="x")
