"""Firmware tests: images are built with the cross compiler and run under QEMU; each model is compiled once per session."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.firmware import image, models
from tests.firmware.models import Model

Build = Callable[..., Path]


@pytest.fixture(scope="session")
def tools() -> None:
    absent = image.missing_tools()
    if absent:
        message = f"{', '.join(absent)} not found; install the Debian packages {image.PACKAGES}"
        # Where set-up was asked to install them, a missing tool is an error.
        pytest.fail(message) if os.environ.get("OPENNEUTRON_APT") == "1" else pytest.skip(message)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of the session share."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "firmware"
    folder.mkdir(exist_ok=True)
    return folder


@contextmanager
def alone(shared: Path, name: str) -> Iterator[None]:
    """Keep the other workers out."""
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def zoo_model(shared: Path) -> Callable[..., Model]:
    def get(name: str, target: str = "imxrt700") -> Model:
        return _once(shared, f"{name}_{target}", lambda folder: models.compile_zoo(folder, name, target=target))

    return get


@pytest.fixture(scope="session")
def litert_model(shared: Path) -> Callable[..., Model]:
    def get(name: str, data: bytes, **options: Any) -> Model:
        return _once(shared, name, lambda folder: models.compile_litert(folder, data, **options))

    return get


@pytest.fixture
def build(tools: None, shared: Path) -> Build:
    """`image.build_image`, one at a time: all images share the library's objects."""

    def call(model: Model, name: str = "all", **settings: Any) -> Path:
        with alone(shared, "build"):
            return image.build_image(shared / "objects", model.folder, name, **settings)

    return call


def _once(shared: Path, name: str, make: Callable[[Path], None]) -> Model:
    folder = shared / name
    with alone(shared, name):
        if not (folder / "model.h").is_file():
            folder.mkdir(exist_ok=True)
            make(folder)
    return models.load(folder)
