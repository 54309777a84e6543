"""Inputs that unpack to many times their size: refused before they are unpacked."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from openneutron.analyze.data import arrays
from openneutron.analyze.data.labelled import Wanted
from openneutron.analyze.data.shards import Reading, shards_of
from openneutron.errors import FormatError


def header(count: int) -> bytes:
    """The first bytes of an .npy file with so many elements."""
    made = io.BytesIO()
    np.lib.format.write_array_header_1_0(made, {"descr": "|i1", "fortran_order": False, "shape": (count,)})
    return made.getvalue()


def test_an_archive_of_zeros_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "LARGEST_UNPACKED", 1 << 20)
    np.savez_compressed(tmp_path / "x.npz", x=np.zeros(1 << 24, np.int8))
    with pytest.raises(FormatError, match=r"would become 16,777,\d+.*OPENNEUTRON_MEMORY"):
        arrays.read_arrays(tmp_path / "x.npz")
    monkeypatch.setenv("OPENNEUTRON_MEMORY", "0")
    assert arrays.read_arrays(tmp_path / "x.npz")


def test_what_shrinks_well_is_no_attack(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "x.npz", x=np.zeros(1 << 22, np.int8))
    found = arrays.read_arrays(tmp_path / "x.npz")
    assert isinstance(found, dict) and found["x"].size == 1 << 22


@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
def test_an_array_that_says_it_is_huge_is_a_sentence(tmp_path: Path, name: str) -> None:
    content = header(1 << 50) + bytes(100)
    if name == "x.npy":
        (tmp_path / name).write_bytes(content)
    else:
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("x.npy", content)
    with pytest.raises(FormatError, match=r"x\.np[yz]"):
        arrays.read_arrays(tmp_path / name)


def test_a_member_of_a_compressed_tar_is_not_unpacked(tmp_path: Path) -> None:
    member = tarfile.TarInfo("000.npy")
    member.size = 1 << 40
    with tarfile.open(tmp_path / "x.tar", "w:gz") as archive:
        archive.fileobj.write(member.tobuf())  # the header alone: nothing of it needs to be there
    (shard,) = shards_of(str(tmp_path / "x.tar"), Wanted((3,)), Reading(256, 0, "", ""))
    with pytest.raises(FormatError, match=r"000\.npy: its [\d,]+ bytes would become 1,099,511,627,776"):
        shard.load()
