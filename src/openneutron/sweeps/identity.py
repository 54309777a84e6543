"""Compute digests of the code, of a model and of a variant; equal digests mean equal rows.

Example:
    >>> key_of(variant, identity_of(variant.model), code_version())
    '5f0c…'
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import platform
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import openneutron
from openneutron.executorch.capture.sources import find
from openneutron.sweeps.plan import Model, Variant
from openneutron.sweeps.scoring import data_identity

# What decides about results beside our own code.
_PACKAGES = ("executorch", "torch", "torchao", "ai-edge-litert", "numpy", "ortools", "onnx", "distributed")


@lru_cache(maxsize=1)
def code_version() -> str:
    """Return the version and a digest of the package's files, because two checkouts of one version may differ."""
    folder = Path(openneutron.__file__).parent
    found = hashlib.sha256()
    for file in sorted([*folder.rglob("*.py"), *folder.glob("zoo/*/*.npz")]):
        found.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
    return f"{openneutron.__version__}+{found.hexdigest()[:12]}"


@lru_cache(maxsize=1)
def environment() -> dict[str, str]:
    """Return the package versions on which client and workers must agree."""
    found = {"openneutron": code_version(), "Python": ".".join(map(str, sys.version_info[:2]))}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def identity_of(model: Model) -> str:
    """Return a digest of the model: of a file's bytes, or of a factory's arguments and its package's Python files.

    Models of the zoo are part of the package, whose digest is in every key.
    """
    source = find(model.source)
    parts: list[Any] = [source.kind, model.source if source.kind in ("zoo", "factory") else _digest(model.source)]
    if source.kind == "factory":
        parts += [list(map(list, model.arguments)), _code_of(model.source.partition(":")[0])]
    parts += [list(map(list, model.sizes)), model.calibration]
    if model.calibration and Path(model.calibration).is_file():
        parts.append(_digest(model.calibration))
    if model.data is not None:
        parts.append(data_identity(model.data, _code_of))
    return hashlib.sha256(json.dumps(parts, default=repr).encode()).hexdigest()


def key_of(variant: Variant, identity: str, version: str) -> str:
    """Return the key of a variant's result in the store."""
    text = json.dumps([identity, variant.options, variant.quantizing, version, platform.machine()])
    return hashlib.sha256(text.encode()).hexdigest()


def _digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _code_of(module: str) -> str:
    """Return a digest of the files of a module's top-level package; "" where they are not found."""
    top = module.partition(".")[0]
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return ""
    finally:
        if added:
            sys.path.remove(here)
    if spec is None:
        return ""
    folders = [Path(place) for place in spec.submodule_search_locations or ()]
    files = [file for folder in folders for file in folder.rglob("*.py")] or [Path(spec.origin or "")]
    found = hashlib.sha256()
    for file in sorted(file for file in files if file.is_file()):
        found.update(file.read_bytes())
    return found.hexdigest()
