"""Budgets: what an `openneutron.toml` allows each model, and whether a measurement keeps within it.

Example:
    >>> (entry,) = read_budgets(Path("openneutron.toml"))
    >>> [line.kept for line in compare(entry, {"cycles": 250_000})]
    [True]
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openneutron.errors import FormatError, OptionError
from openneutron.files import kind_of, read_file
from openneutron.machine.targets import load as load_target
from openneutron.options import DEFAULT_TARGET, OPTIMIZE
from openneutron.terminal.sizes import parse_size


@dataclass(frozen=True)
class Kind:
    """One thing that can be budgeted: how to read and write it, and whether more is better."""

    name: str
    meaning: str
    is_size: bool = False
    is_share: bool = False
    at_least: bool = False

    def text(self, value: float) -> str:
        """The value as people write it."""
        if self.is_share:
            return f"{value:.2%}"
        unit = " bytes" if self.is_size else ""
        return f"{value:,.0f}{unit}" if float(value).is_integer() else f"{value:,.3f}{unit}"

    def change(self, delta: float) -> str:
        """A difference of two values with its sign, as exact as the values themselves are written."""
        if self.is_share:
            return f"{100 * delta:+.2f} points"
        return f"{delta:+,.0f}" if float(delta).is_integer() else f"{delta:+,.3f}"


KINDS = {
    kind.name: kind
    for kind in (
        Kind("cycles", "estimated cycles of one run"),
        Kind("milliseconds", "the same at the target's clock"),
        Kind("milliseconds_high", "the upper end of its interval"),
        Kind("stock_milliseconds", "a run of what NXP's converter would make, NPU and CPU, estimated"),
        Kind("stock_milliseconds_high", "the upper end of its interval"),
        Kind("stock_sram", "the arena that NXP's runtime would need", is_size=True),
        Kind("stock_flash", "weights and microcode that NXP's converter would write, estimated", is_size=True),
        Kind("sram", "I/O + scratch + prefetch", is_size=True),
        Kind("flash", "weights + microcode", is_size=True),
        Kind("cpu_nodes", "nodes or operators left on the CPU, without the conversions at the model's border"),
        Kind("lsb", "largest difference of any layer from the reference"),
        Kind("accuracy", "share of right answers of the compiled model", is_share=True, at_least=True),
        Kind("accuracy_drop", "share lost against float, or against the LiteRT reference", is_share=True),
    )
}
_OPTIONS = {"source", "target", "optimize", "data", "limit", "mean", "std", "seed", "per_channel", "fit", "budget",
            "sizes", "calibration"}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One model with its budgets; paths are relative to the file that names them."""

    source: str
    budget: Mapping[str, float]
    target: str = DEFAULT_TARGET
    optimize: str = "default"
    fit: int | None = None
    per_channel: bool = True
    data: str | None = None
    limit: int = 0
    mean: str = ""
    std: str = ""
    seed: int = 0
    sizes: tuple[str, ...] = ()
    calibration: str = ""

    @property
    def is_zoo(self) -> bool:
        """Whether the source is a model of the zoo, which may bring its own data."""
        from openneutron import zoo

        return self.source in zoo.names()

    @property
    def name(self) -> str:
        """Source and target: the same model may be budgeted for several chips."""
        return f"{self.source} on {self.target}"


@dataclass(frozen=True)
class Line:
    """One budget and what was measured; `before` is what a baseline had, None without one."""

    entry: str
    kind: Kind = field(repr=False)
    allowed: float
    measured: float
    before: float | None = None

    @property
    def kept(self) -> bool:
        """Whether the measurement is within the budget."""
        return self.measured >= self.allowed if self.kind.at_least else self.measured <= self.allowed


def compare(entry: Entry, measured: Mapping[str, float], before: Mapping[str, float] | None = None) -> list[Line]:
    """One line per budget of the entry, in the order of the file."""
    return [
        Line(entry.name, KINDS[name], allowed, measured[name], (before or {}).get(name))
        for name, allowed in entry.budget.items()
    ]


def read_budgets(path: Path) -> list[Entry]:
    """The `[[model]]` tables of a file; an error names the file, the model and the key that is wrong."""
    where = str(path)
    data = read_file(path)
    if kind_of(data):
        hint = "name it in an openneutron.toml with its budgets (docs/ci.md); `openneutron fits` asks about one model"
        raise FormatError("this is a model, not a file of budgets", where=where, hint=hint)
    try:
        table = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"this is no TOML: {error}", where=where) from None
    models = table.get("model")
    if set(table) != {"model"} or not isinstance(models, list) or not models:
        raise FormatError("it must have [[model]] tables and nothing else", where=where)
    return [_entry(raw, path, f"{where}, model {number}") for number, raw in enumerate(models, 1)]


def _entry(raw: Any, path: Path, where: str) -> Entry:
    if not isinstance(raw, dict) or not isinstance(raw.get("source"), str):
        raise FormatError("source is missing", where=where, hint='for example source = "model.tflite"')
    where = f"{where} ({raw['source']})"
    unknown = sorted(set(raw) - _OPTIONS)
    if unknown:
        raise FormatError(f"unknown key {unknown[0]!r}", where=where, hint=f"keys: {', '.join(sorted(_OPTIONS))}")
    budget = raw.get("budget")
    if not isinstance(budget, dict) or not budget:
        raise FormatError("it has no [model.budget]", where=where, hint=f"budgets: {', '.join(KINDS)}")
    source = raw["source"]
    if source.endswith(".pt2"):
        raise OptionError(
            "a .pt2 file can run code, and a budget file is no place to trust one", where=where,
            hint="name a .tflite or .onnx file, or package.module:factory",
        )  # fmt: skip
    if source.endswith((".tflite", ".onnx")):
        source = str(path.parent / source)
    data = raw.get("data")
    entry = Entry(
        source=source,
        budget={name: _read_limit(name, value, where) for name, value in budget.items()},
        target=_of_type(raw, "target", str, DEFAULT_TARGET, where),
        optimize=_of_type(raw, "optimize", str, "default", where),
        fit=_size(raw["fit"], "fit", where) if "fit" in raw else None,
        per_channel=_of_type(raw, "per_channel", bool, True, where),
        data=None if data is None else _data(_of_type(raw, "data", str, "", where), path.parent),
        limit=_of_type(raw, "limit", int, 0, where),
        mean=_of_type(raw, "mean", str, "", where),
        std=_of_type(raw, "std", str, "", where),
        seed=_of_type(raw, "seed", int, 0, where),
        sizes=_sizes(_of_type(raw, "sizes", dict, {}, where), where),
        calibration=_data(raw["calibration"], path.parent) if _of_type(raw, "calibration", str, "", where) else "",
    )
    if entry.optimize not in OPTIMIZE:
        raise OptionError(f"optimize is {entry.optimize!r}", where=where, hint=f"one of {', '.join(OPTIMIZE)}")
    load_target(entry.target)
    if {"accuracy", "accuracy_drop"} & set(entry.budget) and not entry.is_zoo:
        from openneutron.analyze.data.labelled import check_data

        check_data(entry.data, where=where, option="data")
    return entry


def _sizes(raw: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Sizes of an ONNX model as the command line writes them: sizes = { batch = 1, x = [1, 3, 48, 192] }."""
    for name, value in raw.items():
        numbers = value if isinstance(value, list) else [value]
        if not numbers or any(type(one) is not int or one < 1 for one in numbers):
            raise FormatError(f"the size of {name!r} is {value!r}", where=where, hint="give a number or a list of them")
    return tuple(
        f"{name}={','.join(map(str, value)) if isinstance(value, list) else value}" for name, value in raw.items()
    )


def _data(given: str, folder: Path) -> str:
    """A path relative to the file with the budgets; an import path as it is."""
    is_path = ":" not in given or (folder / given).exists()
    return str(folder / given) if is_path else given


def _of_type(raw: Mapping[str, Any], key: str, kind: type, default: Any, where: str) -> Any:
    value = raw.get(key, default)
    if type(value) is not kind:
        raise FormatError(f"{key} is {value!r}", where=where, hint=f"give a {kind.__name__}")
    return value


def _read_limit(name: str, value: Any, where: str) -> float:
    if name not in KINDS:
        raise FormatError(f"unknown budget {name!r}", where=where, hint=f"budgets: {', '.join(KINDS)}")
    kind = KINDS[name]
    if kind.is_size:
        return float(_size(value, name, where))
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0 or (kind.is_share and value > 1):
        hint = "give a share from 0 to 1" if kind.is_share else "give a number that is not negative"
        raise FormatError(f"{name} is {value!r}", where=where, hint=hint)
    return float(value)


def _size(value: Any, name: str, where: str) -> int:
    try:
        return parse_size(str(value), option=name)
    except OptionError as error:
        raise FormatError(error.message, where=where, hint=error.hint) from None
