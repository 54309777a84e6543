"""The seeds of the native fuzz targets reach every kernel: what no seed calls is hardly ever found by mutation."""

from __future__ import annotations

from pathlib import Path

from openneutron.microcode import abi
from openneutron.microcode.payload import parse_payload
from tests.fuzz.payloads import MODELS, write_seeds


def test_every_kernel_is_called_by_a_seed(tmp_path: Path) -> None:
    assert write_seeds(tmp_path) == {kernel.name for kernel in abi.all_kernels()}
    for name in MODELS:
        payload = parse_payload((tmp_path / "payload" / name).read_bytes(), where=name)
        microcode = (tmp_path / "microcode" / name).read_bytes()
        assert microcode.startswith(payload.microcode)
        assert len(microcode) <= 16384  # what the targets are told is the largest input
