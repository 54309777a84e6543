"""JSON of `tflm_modelrunner`, in all its generations, as values with microseconds.

Firmware of SDK 24.12 names an element type `datatype` and counts nanoseconds; later ones say `data_type` and count
microseconds; a mixed form has the total in microseconds and the layers in nanoseconds. Names and sums tell them apart.

Example:
    >>> parse_model('{"timing": 54238, "inputs": [], "outputs": [], "layers": []}', where="COM3").microseconds
    54238.0
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from openneutron.errors import BoardError
from openneutron.modelrunner.answers import BoardLayer, BoardModel, BoardOutput, BoardTensor, check_bytes

_DTYPES = {
    "FLOAT32": "float32", "INT32": "int32", "UINT8": "uint8", "INT8": "int8", "INT16": "int16", "INT4": "int4",
    "INT64": "int64", "BOOL": "bool",
}  # fmt: skip
_NPU = "NeutronGraph"
# Layers that sum up to this many times the total are in nanoseconds and the total is not; exactly 1,000 up to rounding.
_MIXED = 100


@dataclass(frozen=True)
class Described:
    """The loaded model, and how this firmware counts: `units_per_microsecond` of a total, `indexed` when it takes indices."""

    model: BoardModel
    units_per_microsecond: float
    indexed: bool


def parse_model(text: str, where: str) -> BoardModel:
    """Return the answer to `model`."""
    return describe(text, where).model


def describe(text: str, where: str) -> Described:
    """Return the answer to `model`, with what it tells about the firmware."""
    raw = _load(text, where)
    inputs, outputs, layers = (_rows(raw, key, where) for key in ("inputs", "outputs", "layers"))
    old = any("datatype" in row for row in (*inputs, *outputs))
    unit = 1_000.0 if old else 1.0
    total = _number(raw, "timing", where) / unit
    times = [_layer_time(row, where) / unit for row in layers]
    if total > 0 and sum(times) > _MIXED * total:
        times = [time / 1_000 for time in times]
    found = tuple(_layer(row, time) for row, time in zip(layers, times, strict=True))
    model = BoardModel(
        tuple(_tensor(row, where) for row in inputs),
        tuple(_tensor(row, where) for row in outputs),
        int(_number(raw, "ktensor_arena_size", where)),
        int(_number(raw, "model_size", where)),
        total,
        found,
    )
    return Described(model, unit, any("idx" in row for row in outputs))


def parse_run(text: str, where: str, units_per_microsecond: float = 1.0) -> tuple[tuple[BoardOutput, ...], float]:
    """Return the answer to `run`: outputs and microseconds."""
    raw = _load(text, where)
    outputs = []
    for row in _rows(raw, "outputs", where):
        name, dtype = str(row.get("name", "")), _dtype(row)
        try:
            data = base64.b64decode(str(row.get("data", "")), validate=True)
        except (binascii.Error, ValueError):
            raise _damage_error(f"the bytes of output {name!r} are no base64", where) from None
        shape = _shape(row, where)
        if dtype in _DTYPES.values() and dtype != "int4":
            check_bytes(dtype, shape, len(data), f"output {name!r}", where)
        outputs.append(BoardOutput(name, dtype, shape, data))
    return tuple(outputs), _number(raw, "timing", where) / units_per_microsecond


def _load(text: str, where: str) -> dict[str, Any]:
    cleaned = text.replace(",\b", "").strip()  # the board deletes its last comma as on a terminal
    try:
        raw = json.loads(cleaned, parse_constant=lambda word: math.nan)
    except (ValueError, RecursionError):
        raise _damage_error(f"it begins {cleaned[:60]!r}", where) from None
    if not isinstance(raw, dict):
        raise _damage_error(f"it is {cleaned[:60]!r}", where)
    if "error" in raw:
        raise BoardError(f"the board reports: {raw['error']}", where=where, hint=_error_hint(str(raw["error"])))
    return raw


def _error_hint(message: str) -> str:
    hints = {"Model Not Uploaded": "give a model file", "Output": "`openneutron board info` lists the outputs"}
    return next((hint for start, hint in hints.items() if message.startswith(start)), "")


def _rows(raw: dict[str, Any], key: str, where: str) -> list[dict[str, Any]]:
    rows = raw.get(key, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise _damage_error(f"{key} is no list of objects", where)
    return rows


def _number(raw: dict[str, Any], key: str, where: str) -> float:
    value = raw.get(key, 0)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        raise _damage_error(f"{key} is {value!r}", where)
    return float(value)


def _layer_time(row: dict[str, Any], where: str) -> float:
    """A layer's own time; SDK 24.12 puts the mean of all runs beside that of the last."""
    nested = row.get("tensor")
    if "avg_timing" in row:
        return _number(row, "avg_timing", where)
    if "timing" not in row and isinstance(nested, dict):
        return _number(nested, "timing", where)
    return _number(row, "timing", where)


def _layer(row: dict[str, Any], microseconds: float) -> BoardLayer:
    kind = str(row.get("type", ""))
    unit = str(row.get("process_unit", "")) or ("NPU" if kind == _NPU else "CPU")
    return BoardLayer(str(row.get("name", "")), kind, unit, microseconds)


def _tensor(row: dict[str, Any], where: str) -> BoardTensor:
    dtype, shape = _dtype(row), _shape(row, where)
    bits = 4 if dtype == "int4" else np.dtype(dtype).itemsize * 8 if dtype in _DTYPES.values() else 0
    zero = row.get("zero_points", 0)
    zero = zero[0] if isinstance(zero, list) and zero else zero
    return BoardTensor(
        str(row.get("name", "")), dtype, shape, -(-math.prod(shape) * bits // 8),
        scale=_number(row, "scale", where), zero_point=zero if isinstance(zero, int) else 0,
    )  # fmt: skip


def _dtype(row: dict[str, Any]) -> str:
    word = str(row.get("data_type", row.get("datatype", "")))
    return _DTYPES.get(word.upper(), word or "NoType")


def _shape(row: dict[str, Any], where: str) -> tuple[int, ...]:
    shape = row.get("shape", [])
    if not isinstance(shape, list) or not all(type(size) is int and 0 <= size < 1 << 31 for size in shape):
        raise _damage_error(f"a shape is {shape!r}", where)
    return tuple(shape)


def _damage_error(what: str, where: str) -> BoardError:
    return BoardError(
        f"the board's answer is no result of tflm_modelrunner: {what}", where=where,
        hint="run the command again; a name with % in it also spoils the board's answers",
    )  # fmt: skip
