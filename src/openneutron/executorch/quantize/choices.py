"""Choices: how a network is quantized, as a whole and layer by layer; given as options or as a quantization file.

A quantization file is TOML. Its keys are the compile options about quantization. Each `[[layer]]` changes some of them for
the layers that its `name` matches; the last match wins. `[[tried]]` tables, which `openneutron tune` appends, are ignored.

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
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final

from openneutron.errors import FormatError, OptionError
from openneutron.executorch.quantize.precision import PrecisionLike, Precisions
from openneutron.files import read_file
from openneutron.litert.grouped_weights import GROUP_SIZES
from openneutron.options import OBSERVERS, SCHEMA, WEIGHTS, Options, check_options

# The usual default of percentile observers: one value in ten thousand is clipped.
PERCENTILE: Final = 99.99
GROUP_SIZE: Final = Options.group_size
_TRACE = "tried"


@dataclass(frozen=True)
class LayerChoice:
    """Settings for the layers that `name` matches; None keeps the model's setting."""

    name: str
    activations: str | None = None
    per_channel: bool | None = None
    observer: str | None = None
    percentile: float | None = None
    weights: str | None = None
    group_size: int | None = None
    exclude: bool = False

    def matches(self, names: Iterable[str]) -> bool:
        """Return whether one of these names matches, or lies inside a module that matches."""
        return any(fnmatchcase(one, self.name) or fnmatchcase(one, f"{self.name}.*") for one in names)


@dataclass(frozen=True)
class Choices:
    """All settings of the quantizer and of the post-training methods; the fields are options of a compile."""

    per_channel: bool = Options.per_channel
    observer: str = Options.observer
    percentile: float = PERCENTILE
    exclude: tuple[str, ...] = ()
    weights: str = Options.weights
    group_size: int = Options.group_size
    activations: str = Options.activations
    precision: PrecisionLike = ()
    equalize: bool = Options.equalize
    smooth: bool = Options.smooth
    correct_bias: bool = Options.correct_bias
    adaround: bool = Options.adaround
    fit_ranges: bool = Options.fit_ranges
    state_headroom: float = Options.state_headroom
    layers: tuple[LayerChoice, ...] = ()
    # Names of the layers that the user's quantization file has; others were found. It changes nothing that is compared.
    asked: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if self.adaround and self.weights != "int4" and any(one.weights == "int4" for one in self.layers):
            raise OptionError(
                "adaround rounds weights of 8 or of 4 bits, and some layers have 4", hint="leave one of them out"
            )

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Choices:
        """Make choices from compile options; options override the quantization file."""
        file = given.get("quantization") or {}
        own = {name: value for name, value in given.items() if name in NAMES and value != SCHEMA[name].default}
        read = read_choices(file) if file else {}
        return cls(**{**read, **own}, asked=tuple(one.name for one in read.get("layers", ())))

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the chosen post-training methods."""
        return tuple(name for name in METHODS if getattr(self, name))

    def without_fitting(self) -> Choices:
        """Return the choices without the methods that change weights for the calibration data."""
        return dataclasses.replace(self, equalize=False, smooth=False, adaround=False)

    def refuse_methods(self, reason: str, hint: str) -> None:
        """Raise an `OptionError` if a post-training method was chosen where none can be used."""
        if self.methods:
            raise OptionError(f"{' and '.join(self.methods)}: {reason}", hint=hint)


METHODS: Final = ("equalize", "smooth", "correct_bias", "adaround", "fit_ranges")
# The compile options that a quantization file may hold.
NAMES: Final = tuple(one.name for one in dataclasses.fields(Choices) if one.name in SCHEMA)


def read_choices(given: Any) -> dict[str, Any]:
    """Return the fields of `Choices` from a path, a mapping, or JSON; an error names the wrong value and its place.

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
    found |= check_options(raw, where=where, known=known)
    if not isinstance(layers, list):
        raise FormatError("layer is no list", where=where, hint="write [[layer]] and name = ... below it")
    found["layers"] = tuple(layer_choice(layer, where=f"{where}, layer {at}") for at, layer in enumerate(layers, 1))
    Precisions.of(found.get("precision", ()), found.get("activations", Options.activations))
    return found


def layer_choice(raw: Any, *, where: str) -> LayerChoice:
    """Check and convert one `[[layer]]` table."""
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
    for name, choices in (
        ("activations", SCHEMA["activations"].choices),
        ("weights", WEIGHTS),
        ("observer", OBSERVERS),
    ):
        if name in raw and raw[name] not in choices:
            raise OptionError(f"{name} is {raw[name]!r}", where=where, hint=f"one of {', '.join(choices)}")
    if "group_size" in raw:
        check_group_size(raw["group_size"], where)
    for name in ("per_channel", "exclude"):
        if name in raw and not isinstance(raw[name], bool):
            raise OptionError(f"{name} is {raw[name]!r}", where=where, hint="true or false")
    return LayerChoice(**{**raw, "observer": observer})


def check_group_size(value: Any, where: str) -> None:
    """Raise an `OptionError` unless 4-bit weights can share a scale in groups of so many inputs."""
    if isinstance(value, bool) or value not in (0, *GROUP_SIZES):
        raise OptionError(
            f"group_size is {value!r}", where=where,
            hint=f"{', '.join(map(str, GROUP_SIZES))}, or 0 for one scale per output channel",
        )  # fmt: skip


def _percentile(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 50 < value <= 100:
        raise OptionError(f"percentile is {value!r}", where=where, hint="a number above 50, up to 100, such as 99.9")
    return float(value)


def to_table(choices: Choices) -> dict[str, Any]:
    """Return the settings that differ from their defaults, as a mapping that `quantization` accepts.

    Example:
        >>> to_table(Choices(per_channel=False))
        {'per_channel': False}
    """
    plain = Choices()
    found: dict[str, Any] = {}
    for name in (*NAMES, "percentile"):
        value = getattr(choices, name)
        if value != getattr(plain, name):
            found[name] = list(value) if isinstance(value, tuple) else value
    if choices.layers:
        found["layer"] = [_options_given(one) for one in choices.layers]
    return found


def to_toml(choices: Choices, tried: Iterable[Mapping[str, Any]] = (), *, head: str = "") -> str:
    """Return a quantization file with these choices and, below them, the tried candidates.

    Example:
        >>> print(to_toml(Choices(correct_bias=True, layers=(LayerChoice("head", activations="int16"),))))
    """
    lines = [f"# {line}" for line in head.splitlines()]
    table = to_table(choices)
    layers = table.pop("layer", [])
    lines += [f"{name} = {_toml(value)}" for name, value in table.items()]
    for key, tables in (("layer", layers), (_TRACE, tried)):
        for one in tables:
            lines += ["", f"[[{key}]]", *(f"{name} = {_toml(value)}" for name, value in one.items())]
    return "\n".join(lines) + "\n"


def _options_given(layer: LayerChoice) -> dict[str, Any]:
    found = {one.name: getattr(layer, one.name) for one in dataclasses.fields(layer)}
    return {name: value for name, value in found.items() if value is not None and value is not False} | (
        {"per_channel": False} if layer.per_channel is False else {}
    )


def _toml(value: Any) -> str:
    """Format a value for TOML; strings, numbers, booleans and lists are written as in JSON."""
    return json.dumps(value, ensure_ascii=False)
