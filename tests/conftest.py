"""Shared by all tests: hypothesis profiles, and the model files of `make test-real`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# As many tests run at a time as there are cores. Threads of torch would wait for each other's turn, in every observer of
# every calibration; and sums are the same on every machine with one.
for _library in ("OMP", "OPENBLAS"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

# No deadline: a shared machine stalls, and a slow example is not a wrong one. Derandomized, so that a red run is red
# for everyone; `make test-full` explores.
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=64)
settings.register_profile("full", deadline=None, max_examples=2000)  # tests with a count of their own: `examples`
settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--models", default="", help="a folder of .tflite files, or files separated by commas")
    parser.addoption("--keywords", default="", help="an .npz with x and y: labelled inputs of a keyword model")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once per file named by --models that suits it.

    `real_model` is any of them, `source_model` one that no converter has been at, `converted_model` the others;
    `keyword_case` is a keyword model together with the file named by --keywords.
    """
    files = _model_files(metafunc.config.getoption("--models"))
    named = metafunc.config.getoption("--keywords")
    sources = [file for file in files if not _is_converted(file)]
    choices: dict[str, list[Any]] = {
        "real_model": files,
        "source_model": sources,
        "converted_model": [file for file in files if file not in sources],
        "keyword_case": [(file, Path(named)) for file in sources if named and "kws" in file.name],
    }
    for fixture in set(choices) & set(metafunc.fixturenames):
        ids = [one[0].name if isinstance(one, tuple) else one.name for one in choices[fixture]]
        metafunc.parametrize(fixture, choices[fixture], ids=ids)


def _is_converted(file: Path) -> bool:
    return b"NeutronGraph" in file.read_bytes()


def _model_files(named: str) -> list[Path]:
    files: list[Path] = []
    for part in filter(None, named.split(",")):
        path = Path(part)
        if not path.exists():
            raise pytest.UsageError(f"--models names {part}, which does not exist")
        files += sorted(path.glob("*.tflite")) if path.is_dir() else [path]
    return files
