"""Read a sweep from a TOML file.

Example:
    >>> read_toml("examples/sweep.toml").axes["target"]
    ['imxrt700', 'mcxn94x']
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openneutron.errors import FormatError
from openneutron.files import read_file

_KEYS = {"model", "grid"}


@dataclass(frozen=True)
class Description:
    """The content of a file: models as `make_plan` takes them, and the values of each option."""

    models: list[dict[str, Any]]
    axes: dict[str, Any] = field(default_factory=dict)


def read_toml(path: str | os.PathLike[str]) -> Description:
    """Read the `[[model]]` tables and the `[grid]`; paths are relative to the file's folder."""
    where = os.fspath(path)
    try:
        raw = tomllib.loads(read_file(path).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"no TOML: {error}", where=where) from error
    unknown = sorted(set(raw) - _KEYS)
    if unknown:
        raise FormatError(f"unknown {unknown}", where=where, hint="a sweep has [[model]] tables and a [grid]")
    models, axes = raw.get("model", []), raw.get("grid", {})
    if not isinstance(models, list) or not models or not isinstance(axes, dict):
        raise FormatError("no [[model]] table", where=where, hint='write [[model]] and source = "..." below it')
    folder = Path(path).parent
    return Description([_resolve_paths(model, folder) for model in models], axes)


def _resolve_paths(model: dict[str, Any], folder: Path) -> dict[str, Any]:
    beside = {name: folder / str(model[name]) for name in ("source", "calibration", "data") if model.get(name)}
    found = {name: str(file) for name, file in beside.items() if file.is_file()}
    data = beside.get("data")
    if data is not None and (data.is_dir() or any(one in data.name for one in "*{")):
        found["data"] = str(data)
    return {**model, **found}
