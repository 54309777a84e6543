from __future__ import annotations

import pytest
import torch

import openneutron
from openneutron.errors import FormatError
from openneutron.microcode.pte_constants import read_constants


@pytest.fixture(scope="module")
def pte() -> bytes:
    torch.manual_seed(0)
    x = torch.rand(1, 8)
    constants = {"get_bos_id": 7, "get_eos_ids": [1, 2], "use_kv_cache": True, "get_ratio": 0.5}
    return openneutron.compile(torch.nn.Linear(8, 4), (x,), calibration=[(x,)], constant_methods=constants).pte


def test_numbers_of_every_kind_are_read_and_forward_is_none_of_them(pte: bytes) -> None:
    found = read_constants(pte, where="<pte>")
    assert found == {"get_bos_id": [7], "get_eos_ids": [1, 2], "use_kv_cache": [True], "get_ratio": [0.5]}


def test_damaged_files_are_named(pte: bytes) -> None:
    with pytest.raises(FormatError):
        read_constants(b"\0" * 64, where="<pte>")
    for at in range(0, len(pte) - 8, max(1, len(pte) // 200)):
        damaged = pte[:at] + b"\xff\xff\xff\x7f" + pte[at + 4 :]
        try:
            read_constants(damaged, where="<pte>")
        except FormatError:
            continue
