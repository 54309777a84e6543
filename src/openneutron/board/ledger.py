"""Ledger of measurements: a TOML file with one `[[point]]` table per measurement of a model on a board.

```toml
[[point]]
model = "cifarnet_int8.tflite"
sha256 = "b46bc7cf..."            # of the model before conversion
chip = "imxrt700"
converter = "3.1.1"               # version of NXP's converter
runtime = "tflm"                  # or "executorch"
npu_hz = 324_000_000
milliseconds = [1.027, 1.031]     # every run
arena_bytes = 44_768
source = "MIMXRT700-EVK on my desk"
date = 2026-11-19
```

Only `model`, `chip`, `source` and one measured figure are required. A `predicted` table has the estimate of a point: the public
ledger has one for each.

Example:
    >>> [point.chip for point in read_ledger("points.toml")]
    ['imxrt700']
"""

from __future__ import annotations

import datetime
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from openneutron.errors import FormatError
from openneutron.files import read_file, write_file

RUNTIMES = ("tflm", "executorch")
# What can be measured beside the time; each is a size in bytes or a count.
FIGURES = (
    "arena_bytes", "planned_bytes", "method_bytes", "scratch_bytes", "prefetch_bytes", "weight_bytes", "microcode_bytes",
    "kernel_bytes", "kernel_calls", "file_bytes",
)  # fmt: skip
HEAD = "# Measurements of models on boards, read by `openneutron.board.ledger`.\n"


@dataclass(frozen=True)
class Prediction:
    """The estimate of a point: the date it was made, milliseconds with their interval, and the figures it names."""

    date: str
    milliseconds: float = 0.0
    low: float = 0.0
    high: float = 0.0
    figures: Mapping[str, int] | None = None


@dataclass(frozen=True)
class Measurement:
    """One point of a ledger; figures that were not measured are 0 or empty.

    `model` is a file or a name, `sha256` that of the file before conversion. `milliseconds` are all runs, `layers` the time of
    each layer by its name. `fetch_constants` says that weights were copied from flash during the run.
    """

    model: str
    chip: str
    source: str
    milliseconds: tuple[float, ...] = ()
    date: str = ""
    sha256: str = ""
    converter: str = ""
    runtime: str = "tflm"
    npu_hz: int = 0
    cpu_hz: int = 0
    arena_bytes: int = 0
    planned_bytes: int = 0
    method_bytes: int = 0
    scratch_bytes: int = 0
    prefetch_bytes: int = 0
    weight_bytes: int = 0
    microcode_bytes: int = 0
    kernel_bytes: int = 0
    kernel_calls: int = 0
    file_bytes: int = 0
    fetch_constants: bool = False
    layers: Mapping[str, float] | None = None
    note: str = ""
    predicted: Prediction | None = None

    @property
    def time(self) -> float:
        """The median of the runs in milliseconds, 0 without one."""
        runs = sorted(self.milliseconds)
        half = len(runs) // 2
        if not runs:
            return 0.0
        return runs[half] if len(runs) % 2 else (runs[half - 1] + runs[half]) / 2


_TEXTS = ("model", "chip", "source", "date", "sha256", "converter", "runtime", "note")
_COUNTS = ("npu_hz", "cpu_hz", *FIGURES)
_KNOWN = tuple(field.name for field in fields(Measurement))


def read_ledger(path: str | os.PathLike[str]) -> tuple[Measurement, ...]:
    """Return the points of a ledger; a `FormatError` names the point and the key that is wrong."""
    where = os.fspath(path)
    try:
        raw = tomllib.loads(read_file(path).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"this is no TOML ({error})", where=where) from None
    unknown = [key for key in raw if key != "point"]
    tables = raw.get("point", [])
    if unknown or not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
        raise FormatError(
            f"unknown key {unknown[0]!r}" if unknown else "point is not a list of tables",
            where=where,
            hint="a ledger has one [[point]] table per measurement",
        )
    return tuple(_measurement(table, f"{where}, point {number}") for number, table in enumerate(tables, 1))


def point_text(point: Measurement) -> str:
    """Return the `[[point]]` table of a measurement, without keys at their defaults."""
    lines = ["[[point]]"]
    for field in fields(Measurement):
        value = getattr(point, field.name)
        if value == field.default or field.name == "predicted":
            continue
        lines.append(f"{field.name} = {_value(value)}")
    if point.predicted is not None:
        made = point.predicted
        lines.append(f'predicted.date = "{made.date}"')
        if made.milliseconds:
            lines.append(f"predicted.milliseconds = {_value((made.milliseconds, made.low, made.high))}")
        lines += [f"predicted.{name} = {_value(value)}" for name, value in (made.figures or {}).items()]
    return "\n".join(lines) + "\n"


def append_point(path: str | os.PathLike[str], point: Measurement) -> None:
    """Add a point at the end of a ledger, which is made if there is none; nothing else in the file changes."""
    old = read_file(path).decode() if Path(path).exists() else HEAD
    if Path(path).exists():
        read_ledger(path)  # a file that is not a ledger stays as it is
    write_file(path, (old.rstrip("\n") + "\n\n" + point_text(point)).encode())


def _value(value: Any) -> str:
    """Return a value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:_}"
    if isinstance(value, float):
        return repr(float(value))  # a NumPy number too
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)  # a JSON string is a TOML basic string
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    return "{ " + ", ".join(f"{json.dumps(key)} = {_value(one)}" for key, one in value.items()) + " }"


def _measurement(raw: Mapping[str, Any], where: str) -> Measurement:
    for key in raw:
        if key not in _KNOWN:
            raise FormatError(f"unknown key {key!r}", where=where, hint=f"known: {', '.join(_KNOWN)}")
    for key in ("model", "chip", "source"):
        if not raw.get(key):
            raise FormatError(
                f"{key} is missing", where=where, hint=f"every point has model, chip and source: add {key}"
            )
    found: dict[str, Any] = {}
    for key, value in raw.items():
        if key in _TEXTS:
            found[key] = _text(key, value, where)
        elif key in _COUNTS:
            found[key] = _count(key, value, where)
        elif key == "milliseconds":
            found[key] = _milliseconds(key, value, where)
        elif key == "fetch_constants":
            if not isinstance(value, bool):
                raise FormatError(f"{key} is {value!r}", where=where, hint="write true or false")
            found[key] = value
        elif key == "layers":
            found[key] = _layers(value, where)
        else:
            found[key] = _prediction(value, where)
    point = Measurement(**found)
    if point.runtime not in RUNTIMES:
        raise FormatError(f"runtime is {point.runtime!r}", where=where, hint=f"one of {', '.join(RUNTIMES)}")
    if not point.milliseconds and not any(getattr(point, name) for name in FIGURES):
        raise FormatError("nothing is measured", where=where, hint=f"give milliseconds or one of {', '.join(FIGURES)}")
    return point


def _text(key: str, value: Any, where: str) -> str:
    if isinstance(value, datetime.date):
        return value.isoformat()
    if not isinstance(value, str):
        raise FormatError(f"{key} is {value!r}", where=where, hint="give a text in quotes")
    return value


def _count(key: str, value: Any, where: str) -> int:
    if type(value) is not int or value < 0:
        raise FormatError(f"{key} is {value!r}", where=where, hint="give a whole number that is not negative")
    return value


def _milliseconds(key: str, value: Any, where: str) -> tuple[float, ...]:
    runs = value if isinstance(value, list) else [value]
    if not runs or any(type(one) not in (int, float) or not 0 < one < float("inf") for one in runs):
        raise FormatError(f"{key} is {value!r}", where=where, hint="give milliseconds above 0, or a list of them")
    return tuple(map(float, runs))


def _layers(value: Any, where: str) -> dict[str, float]:
    if not isinstance(value, dict) or any(type(one) not in (int, float) or one < 0 for one in value.values()):
        raise FormatError(f"layers is {value!r}", where=where, hint='give milliseconds by name: { "conv1" = 0.31 }')
    return {name: float(one) for name, one in value.items()}


def _prediction(value: Any, where: str) -> Prediction:
    if not isinstance(value, dict) or "date" not in value:
        raise FormatError(f"predicted is {value!r}", where=where, hint="give a table with the date of the prediction")
    figures = {key: one for key, one in value.items() if key not in ("date", "milliseconds")}
    for key, one in figures.items():
        if key not in FIGURES:
            raise FormatError(f"unknown key 'predicted.{key}'", where=where, hint=f"known: {', '.join(FIGURES)}")
        _count(f"predicted.{key}", one, where)
    times = _milliseconds("predicted.milliseconds", value.get("milliseconds", [1.0, 1.0, 1.0]), where)
    if len(times) != 3:
        raise FormatError(
            f"predicted.milliseconds is {value['milliseconds']!r}", where=where, hint="give [estimate, low, high]"
        )
    estimate = times if "milliseconds" in value else (0.0, 0.0, 0.0)
    return Prediction(_text("predicted.date", value["date"], where), *estimate, figures=figures or None)
