from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import openneutron

HEAVY = ("torch", "executorch", "ortools", "numpy", "ai_edge_litert")


def in_a_new_process(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_the_package_imports_nothing_heavy() -> None:
    loaded = in_a_new_process(f"import openneutron, sys; print([m for m in {HEAVY!r} if m in sys.modules])")
    assert loaded.strip() == "[]"


def test_importing_the_package_imports_few_modules() -> None:
    """Each costs a fraction of a millisecond; the command's start is measured by benchmarks/startup.py."""
    code = "import sys; before = set(sys.modules); import openneutron; print(len(set(sys.modules) - before))"
    assert int(in_a_new_process(code)) <= 40


def test_every_public_name_is_listed_and_has_a_home() -> None:
    assert set(openneutron._HOMES) <= set(openneutron.__all__)
    assert set(openneutron.__all__) <= set(dir(openneutron))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'compyle'"):
        openneutron.compyle  # noqa: B018


def test_the_installed_distribution_carries_the_version_of_the_package() -> None:
    from importlib.metadata import version

    assert version("openneutron") == openneutron.__version__


def test_native_libraries_are_built() -> None:
    from openneutron.machine.native import delegate_path, library_path

    assert library_path().is_file()
    assert delegate_path().is_file()


def test_native_libraries_name_no_path_of_the_building_machine() -> None:
    from openneutron.machine.native import delegate_path, library_path

    root = str(Path(__file__).resolve().parents[1]).encode()
    for path in (library_path(), delegate_path()):
        assert root not in path.read_bytes(), path.name


def test_a_missing_native_library_says_what_to_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from openneutron.machine import native as _native

    monkeypatch.setattr(_native, "_FOLDER", tmp_path)
    with pytest.raises(openneutron.OpenNeutronError, match=r"libopenneutron\.so is not built.*make setup"):
        _native.library_path()
