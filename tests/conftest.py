"""Shared by all tests: hypothesis profiles, and the model files of `make test-real`."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# No deadline: a shared machine stalls, and a slow example is not a wrong one. Derandomized, so that a red run is red
# for everyone; `make test-full` explores.
settings.register_profile("quick", deadline=None, derandomize=True)
settings.register_profile("full", deadline=None, max_examples=2000)
settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--models", default="", help="a folder of .tflite files, or files separated by commas")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes `real_model` once per file named by --models."""
    if "real_model" in metafunc.fixturenames:
        files = _model_files(metafunc.config.getoption("--models"))
        metafunc.parametrize("real_model", files, ids=[file.name for file in files])


def _model_files(named: str) -> list[Path]:
    files: list[Path] = []
    for part in filter(None, named.split(",")):
        path = Path(part)
        if not path.exists():
            raise pytest.UsageError(f"--models names {part}, which does not exist")
        files += sorted(path.glob("*.tflite")) if path.is_dir() else [path]
    return files
