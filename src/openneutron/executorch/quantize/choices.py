"""Choices: how a network is quantized, for all of it and layer by layer; as options, or as a quantization file.

A quantization file is TOML. Its keys are the options of a compile that quantize; each `[[layer]]` changes some of them for
layers that its `name` matches, the last that matches decides. `[[tried]]`, which `openneutron tune`
writes below, is not read.

    per_channel = true
    observer = "minmax"
    correct_bias = true

    [[layer]]
    name = "head"              # module path, class, node or operator; globs too
    activations = "int16"

Example:
    >>> Choices.of({"quantization": "q.toml", "observer": "percentile"}).layers[0].activations
    'int16'
"""

from __future__ import annotations

import dataclasses
import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from openneutron.errors import FormatError, OptionError
from openneutron.executorch.quantize.precision import PrecisionLike, Precisions
from openneutron.files import read_file
from openneutron.options import OBSERVERS, SCHEMA, Options, checked

# What others that clip by percentile start from: one value in ten thousand lies beyond.
PERCENTILE: Final = 99.99
_TRACE = "tried"


@dataclass(frozen=True)
class LayerChoice:
    """What is different for the layers that `name` matches; None is as for the whole model."""

    name: str
    activations: str | None = None
    per_channel: bool | None = None
    observer: str | None = None
    percentile: float | None = None
    exclude: bool = False

    def matches(self, names: Iterable[str]) -> bool:
        """Whether something known by these names is meant, or lies inside a module that is."""
        return any(fnmatchcase(one, self.name) or fnmatchcase(one, f"{self.name}.*") for one in names)


@dataclass(frozen=True)
class Choices:
    """Everything the quantizer and the methods around it are asked for; the fields are options of a compile."""

    per_channel: bool = Options.per_channel
    observer: str = Options.observer
    percentile: float = PERCENTILE
    exclude: tuple[str, ...] = ()
    activations: str = Options.activations
    precision: PrecisionLike = ()
    equalize: bool = Options.equalize
    smooth: bool = Options.smooth
    correct_bias: bool = Options.correct_bias
    adaround: bool = Options.adaround
    layers: tuple[LayerChoice, ...] = ()

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Choices:
        """From options of a compile; what they say beside a quantization file is stronger than the file."""
        file = given.get("quantization") or {}
        own = {name: value for name, value in given.items() if name in NAMES and value != SCHEMA[name].default}
        return cls(**{**(read_choices(file) if file else {}), **own})

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the methods that work on a module after or before calibration."""
        return tuple(name for name in METHODS if getattr(self, name))

    def refuse_methods(self, reason: str, hint: str) -> None:
        """An `OptionError` when a method is asked for where there is none."""
        if self.methods:
            raise OptionError(f"{' and '.join(self.methods)}: {reason}", hint=hint)


METHODS: Final = ("equalize", "smooth", "correct_bias", "adaround")
# Options of a compile that a quantization file may hold.
NAMES: Final = tuple(one.name for one in dataclasses.fields(Choices) if one.name in SCHEMA)


def read_choices(given: Any) -> dict[str, Any]:
    """The fields of `Choices` from a path, a mapping, or a mapping as JSON; an error names what is wrong, and where.

    Example:
        >>> read_choices({"per_channel": True, "layer": [{"name": "head", "activations": "int16"}]})["per_channel"]
        True
    """
    where = "quantization"
    if isinstance(given, str) and given.lstrip().startswith("{"):
        raw = json.loads(given)
    elif isinstance(given, (str, os.PathLike)):
        where = os.fspath(given)
        try:
            raw = tomllib.loads(read_file(given).decode())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise FormatError(f"no TOML: {error}", where=where, hint="docs/tuning.md shows such a file") from error
    else:
        raw = dict(given)
    layers = raw.pop("layer", [])
    raw.pop(_TRACE, None)
    found: dict[str, Any] = {}
    if "percentile" in raw:
        found["percentile"] = _percentile(raw.pop("percentile"), where)
    known = {name: SCHEMA[name] for name in NAMES}
    found |= checked(raw, where=where, known=known)
    if not isinstance(layers, list):
        raise FormatError("layer is no list", where=where, hint="write [[layer]] and name = ... below it")
    found["layers"] = tuple(layer_choice(layer, where=f"{where}, layer {at}") for at, layer in enumerate(layers, 1))
    Precisions.of(found.get("precision", ()), found.get("activations", Options.activations))
    return found


def layer_choice(raw: Any, *, where: str) -> LayerChoice:
    """One layer's table, checked."""
    fields = [one.name for one in dataclasses.fields(LayerChoice)]
    if not isinstance(raw, Mapping) or not isinstance(raw.get("name"), str) or not raw["name"].strip():
        raise FormatError("it has no name", where=where, hint='for example name = "features.3"')
    where = f"{where} ({raw['name']})"
    unknown = sorted(set(raw) - set(fields))
    if unknown:
        raise OptionError(f"unknown key {unknown[0]!r}", where=where, hint=f"keys: {', '.join(fields)}")
    if "percentile" in raw:
        _percentile(raw["percentile"], where)
    observer = "percentile" if "percentile" in raw and "observer" not in raw else raw.get("observer")
    for name, choices in (("activations", SCHEMA["activations"].choices), ("observer", OBSERVERS)):
        if name in raw and raw[name] not in choices:
            raise OptionError(f"{name} is {raw[name]!r}", where=where, hint=f"one of {', '.join(choices)}")
    for name in ("per_channel", "exclude"):
        if name in raw and not isinstance(raw[name], bool):
            raise OptionError(f"{name} is {raw[name]!r}", where=where, hint="true or false")
    return LayerChoice(**{**raw, "observer": observer})


def _percentile(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 50 < value <= 100:
        raise OptionError(f"percentile is {value!r}", where=where, hint="a number above 50, up to 100, such as 99.9")
    return float(value)


def to_table(choices: Choices) -> dict[str, Any]:
    """What is not at its default, as a mapping that `quantization` takes.

    Example:
        >>> to_table(Choices(per_channel=True))
        {'per_channel': True}
    """
    plain = Choices()
    found: dict[str, Any] = {}
    for name in (*NAMES, "percentile"):
        value = getattr(choices, name)
        if value != getattr(plain, name):
            found[name] = list(value) if isinstance(value, tuple) else value
    if choices.layers:
        found["layer"] = [_given(one) for one in choices.layers]
    return found


def to_toml(choices: Choices, tried: Iterable[Mapping[str, Any]] = (), *, head: str = "") -> str:
    """A quantization file that says the same, with what was tried below it.

    Example:
        >>> print(to_toml(Choices(per_channel=True, layers=(LayerChoice("head", activations="int16"),))))
    """
    lines = [f"# {line}" for line in head.splitlines()]
    table = to_table(choices)
    layers = table.pop("layer", [])
    lines += [f"{name} = {_toml(value)}" for name, value in table.items()]
    for key, tables in (("layer", layers), (_TRACE, tried)):
        for one in tables:
            lines += ["", f"[[{key}]]", *(f"{name} = {_toml(value)}" for name, value in one.items())]
    return "\n".join(lines) + "\n"


def _given(layer: LayerChoice) -> dict[str, Any]:
    found = {one.name: getattr(layer, one.name) for one in dataclasses.fields(layer)}
    return {name: value for name, value in found.items() if value is not None and value is not False} | (
        {"per_channel": False} if layer.per_channel is False else {}
    )


def _toml(value: Any) -> str:
    """Strings, numbers, switches and lists are written in TOML as in JSON."""
    return json.dumps(value, ensure_ascii=False)
