"""The seeds of the native fuzz targets have every kernel and every code: mutation hardly ever finds what no seed has."""

from __future__ import annotations

from pathlib import Path

from openneutron.microcode import abi
from openneutron.microcode.payload import parse_payload
from openneutron.microcode.table import Storage
from tests.fuzz.payloads import MODELS, write_seeds


def test_seeds_have_every_kernel_and_every_form_of_constants(tmp_path: Path) -> None:
    assert write_seeds(tmp_path) == ({kernel.name for kernel in abi.all_kernels()}, set(Storage))
    for name in MODELS:
        payload = parse_payload((tmp_path / "payload" / name).read_bytes(), where=name)
        microcode = (tmp_path / "microcode" / name).read_bytes()
        assert microcode.startswith(payload.microcode)
        assert len(microcode) <= 16384  # what the targets are told is the largest input
