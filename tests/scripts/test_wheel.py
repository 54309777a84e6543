"""What scripts/wheel.py does to a wheel after it was built: one order, one time, a list of contents."""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import io
import json
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
NAME = "openneutron-0.1.0-py3-none-linux_x86_64.whl"
INFO = "openneutron-0.1.0.dist-info"
METADATA = b"""\
Name: openneutron
Version: 0.1.0
Requires-Dist: numpy>=2.0
Requires-Dist: ortools>=9.14; extra == "max"
"""
FILES = {
    f"{INFO}/METADATA": METADATA,
    f"{INFO}/RECORD": b"",
    "openneutron/__init__.py": b"",
    "openneutron/lib/libopenneutron.so": b"\x7fELF",
    "openneutron/zoo/data/cifar10_test_1000.npz": b"images",
}


@pytest.fixture(scope="module")
def wheel() -> ModuleType:
    spec = importlib.util.spec_from_file_location("wheel_script", ROOT / "scripts" / "wheel.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def packed(folder: Path, names: list[str], year: int) -> Path:
    folder.mkdir()
    with zipfile.ZipFile(folder / NAME, "w") as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name, (year, 1, 1, 0, 0, 0)), FILES[name])
    return folder / NAME


def test_order_and_times_of_the_build_leave_no_trace(wheel: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "first").mkdir(), (tmp_path / "second").mkdir()
    one = wheel.finish(packed(tmp_path / "a", sorted(FILES), 2020), tmp_path / "first")
    other = wheel.finish(packed(tmp_path / "b", sorted(FILES, reverse=True), 2030), tmp_path / "second")
    assert one.read_bytes() == other.read_bytes()


def test_the_record_tells_every_file(wheel: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    with zipfile.ZipFile(wheel.finish(packed(tmp_path / "a", sorted(FILES), 2020), tmp_path / "to")) as archive:
        assert archive.testzip() is None
        rows = list(csv.reader(io.StringIO(archive.read(f"{INFO}/RECORD").decode())))
        assert {row[0] for row in rows} == set(archive.namelist())
        assert all(int(row[2]) == archive.getinfo(row[0]).file_size for row in rows if row[2])


def test_the_list_of_contents_names_libraries_data_and_needs(wheel: ModuleType) -> None:
    found = json.loads(wheel.contents(FILES, INFO))
    assert found["bomFormat"] == "CycloneDX" and found["metadata"]["component"]["version"] == "0.1.0"
    parts = {part["name"]: part for part in found["components"]}
    library = parts["openneutron/lib/libopenneutron.so"]
    assert library["hashes"][0]["content"] == hashlib.sha256(b"\x7fELF").hexdigest()
    assert library["licenses"] == [{"expression": "BSD-3-Clause"}]
    assert "CIFAR-10" in parts["openneutron/zoo/data/cifar10_test_1000.npz"]["licenses"][0]["license"]["name"]
    assert parts["numpy>=2.0"]["scope"] == "required"
    assert parts['ortools>=9.14; extra == "max"']["scope"] == "optional"
