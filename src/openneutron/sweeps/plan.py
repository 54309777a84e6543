"""Expand models, targets and options to the list of variants of a sweep.

Example:
    >>> plan = make_plan(["cifarnet"], {"target": "imxrt700,mcxn94x", "fit": "none,64K"})
    >>> len(plan.variants)
    4
"""

from __future__ import annotations

import itertools
import json
import os
import shlex
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from openneutron.analyze.data.source import Data
from openneutron.errors import OptionError
from openneutron.executorch.capture.sources import find
from openneutron.executorch.quantize.choices import read_choices
from openneutron.files import read_file
from openneutron.machine import targets
from openneutron.options import PUBLIC, TORCH, Option, Options, check_options, read_text
from openneutron.sweeps.scoring import check_scoring

# Options that leave the figures alone, search by themselves, ask for files that a sweep does not keep, or belong to the model.
_NO_AXIS = {
    "dump_kernel_selection_code", "dump_intermediates", "certificate", "trust", "quality", "quality_cycles", "metric",
    "state_headroom",
}  # fmt: skip
AXES: dict[str, Option] = {one.name: one for one in PUBLIC if one.name not in _NO_AXIS}
# Of the options of PyTorch models, these are obeyed behind quantization; all others decide what the quantized program is.
_BEHIND = {"placement", "int8_io"}
QUANTIZING = frozenset(
    one.name for one in AXES.values() if one.fronts == (TORCH,) and not one.key and one.name not in _BEHIND
)
_SWITCH = {"yes": True, "no": False, "true": True, "false": False, "on": True, "off": False}
NONE = "none"
_KEYS = frozenset({"source", "arguments", "sizes", "calibration", "trust", "data", "limit", "mean", "std"})

Pairs = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Model:
    """One model: a source as `openneutron compile` takes it, arguments if it is a factory, trust if it is a .pt2 file.

    With `data` the accuracy of its variants is measured.
    """

    source: str
    arguments: Pairs = ()
    sizes: Pairs = ()
    calibration: str = ""
    trust: bool = False
    data: Data | None = None

    @property
    def label(self) -> str:
        """The name in tables."""
        inside = ", ".join(f"{name}={value}" for name, value in self.arguments)
        return f"{self.source}({inside})" if inside else self.source


@dataclass(frozen=True)
class Variant:
    """One compile: a model and the options that are not at their defaults, the target always."""

    model: Model
    options: Pairs

    @property
    def quantizing(self) -> dict[str, Any]:
        """The options that variants must share to share a quantized program, a quantization file by its content."""
        return {name: contents(name, value) for name, value in self.options if name in QUANTIZING}

    @property
    def label(self) -> str:
        """Model, target and options in one line."""
        return " ".join([self.model.label, *(f"{name}={format_value(value)}" for name, value in self.options)])

    @property
    def command(self) -> str:
        """The command that compiles it alone; "" for a factory with arguments, which only a sweep calls."""
        if self.model.arguments:
            return ""
        words = ["openneutron", "compile", self.model.source]
        for name, value in self.options:
            flag = AXES[name].spelling(value)
            if not flag:
                return ""
            for one in value if isinstance(value, tuple) else (value,):
                words += [flag] if isinstance(one, bool) else [flag, str(one)]
        for name, size in self.model.sizes:
            words += ["--size", f"{name}={format_value(size)}"]
        if self.model.calibration:
            words += ["--calibration", self.model.calibration]
        words += ["--trust"] if self.model.trust else []
        return shlex.join(words)


@dataclass(frozen=True)
class Plan:
    """The variants in the order of the grid, each once, and the names of the options that were asked for."""

    variants: tuple[Variant, ...]
    axes: tuple[str, ...]


def make_plan(models: Any, axes: Mapping[str, Any]) -> Plan:
    """Combine every model with every combination of options; an `OptionError` names what is wrong.

    `models` are sources, `Model`s, or mappings with `source`, `arguments` (name → values), `sizes`, `calibration`, `data`.
    """
    found = list(_models(models))
    if not found:
        raise OptionError("a sweep needs a model", hint="name files, models of the zoo, or package.module:factory")
    grid = {"target": [Options.target], **{_name(name): _values(_name(name), value) for name, value in axes.items()}}
    for name in grid["target"]:
        if grid.get("converter", ["open"]) == ["open"]:
            targets.load(name)
    for name in filter(None, grid.get("quantization", [])):
        read_choices(name)  # says what is wrong with it before anything starts
    names = [name for name in AXES if name in grid]
    variants: dict[Variant, None] = {}
    for model, *values in itertools.product(found, *(grid[name] for name in names)):
        options = tuple(
            (name, value)
            for name, value in zip(names, values, strict=True)
            if name == "target" or value != AXES[name].default
        )
        variants[Variant(model, options)] = None
    return Plan(tuple(variants), tuple(names))


def contents(name: str, value: Any) -> Any:
    """Return an option's value; a quantization file is replaced by its content, so that it can go to other machines."""
    if AXES[name].kind != "table" or not value or value.startswith("{"):
        return value
    return json.dumps(tomllib.loads(read_file(value).decode()), sort_keys=True, default=str)


def format_value(value: Any) -> str:
    """Format a value as the command line takes it.

    Example:
        >>> shown(None), shown(True), shown(("a", "b"))
        ('none', 'yes', 'a+b')
    """
    if value is None or value == ():
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "+".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


def _models(given: Any) -> Iterable[Model]:
    if isinstance(given, (str, os.PathLike, Mapping, Model)):
        given = [given]
    for one in given:
        if isinstance(one, Model):
            yield one
        elif isinstance(one, Mapping):
            yield from _parse_entry(one)
        else:
            yield _check_source(Model(os.fspath(one)))


def _parse_entry(entry: Mapping[str, Any]) -> Iterable[Model]:
    unknown = set(entry) - _KEYS
    if unknown or not isinstance(entry.get("source"), (str, os.PathLike)):
        wrong = f"unknown {sorted(unknown)}" if unknown else "no source"
        raise OptionError(f"a model has {wrong}", hint=f"it has {', '.join(sorted(_KEYS))}")
    arguments = entry.get("arguments", {})
    sizes = tuple((name, tuple(v) if isinstance(v, list) else v) for name, v in entry.get("sizes", {}).items())
    lists = [value if isinstance(value, (list, tuple)) else [value] for value in arguments.values()]
    for values in itertools.product(*lists):
        pairs = tuple(zip(arguments, values, strict=True))
        yield _check_source(
            Model(
                os.fspath(entry["source"]), pairs, sizes, str(entry.get("calibration", "")),
                entry.get("trust") is True, _data(entry),
            )
        )  # fmt: skip


def _data(entry: Mapping[str, Any]) -> Data | None:
    limit = entry.get("limit", 0)
    if type(limit) is not int or limit < 0:
        raise OptionError(f"limit is {limit!r}", where=str(entry["source"]), hint="give a number of samples, 0 for all")
    if not entry.get("data"):
        alone = [name for name in ("limit", "mean", "std") if entry.get(name)]
        if alone:
            raise OptionError(f"{alone[0]} is given, and no data", where=str(entry["source"]), hint="give data too")
        return None
    return Data(str(entry["data"]), limit, str(entry.get("mean", "")), str(entry.get("std", "")))


def _check_source(model: Model) -> Model:
    """Return the model if its source exists; the file itself is not read."""
    found = find(model.source)
    if model.arguments and found.kind != "factory":
        raise OptionError("arguments are for factories", where=model.source, hint="write package.module:factory")
    if model.data is not None:
        check_scoring(model.data, model.source)
    return model


def _name(given: str) -> str:
    name = given.replace("-", "_")
    by_flag = {one.flag.removeprefix("--").replace("-", "_"): one.name for one in AXES.values() if one.flag}
    name = by_flag.get(name, name)
    check_options({name: AXES[name].default} if name in AXES else {name: None}, known=AXES)
    return name


def _values(name: str, given: Any) -> list[Any]:
    option = AXES[name]
    if isinstance(given, str):
        given = [part.strip() for part in given.split(",") if part.strip()]
    elif not isinstance(given, Sequence):
        given = [given]
    if name == "target" and "all" in given:
        given = list(targets.chips())
    if not given:
        raise OptionError(f"{name} has no values", hint="give at least one")
    values = [_value(option, one) for one in given]
    return list(dict.fromkeys(check_options({name: one}, known=AXES)[name] for one in values))


def _value(option: Option, given: Any) -> Any:
    if not isinstance(given, str):
        return tuple(given) if isinstance(given, list) else given
    if option.kind == "switch" and given.lower() in _SWITCH:
        return _SWITCH[given.lower()]
    if option.kind == "names":
        return () if given == NONE else tuple(given.split("+"))
    if option.kind == "table":
        return "" if given == NONE else given
    if option.kind == "bytes":
        return None if given == NONE else read_text(option, given)
    return given if option.kind == "text" else read_text(option, given)
