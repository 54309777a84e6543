"""Rules of NXP's converter by version: which operators it takes, calls, scratch, weights, microcode and arena.

The table is `rules.toml`; each rule names the public file that shows it. Versions without public files for a chip, 2.x among
them, take the newest rules before them; a chip that is newer than the version takes its own oldest ones.

Example:
    >>> rules("imxrt700", "3.0").tail, rules("mcxn94x", "3.0").tail
    (('DEQUANTIZE',), ('SOFTMAX', 'DEQUANTIZE'))
"""

from __future__ import annotations

import os
import tomllib
from functools import cache
from typing import Any, NamedTuple

from openneutron.options import SDK_VERSIONS

TABLE = "rules.toml"
EVERY_CHIP = "*"
# Files of the converter from before its release of SDK 24.12, and its first public version.
_OLDER = ("1.0", "1.2-preview", "1.2")
VERSIONS = (*_OLDER, *SDK_VERSIONS)  # oldest first
NO_OUTPUT_PADDING, PADDED_WEIGHTS, PADDED_CALL, PADDED_AND_SLICED = "no", "weights", "call", "sliced"


class Rule(NamedTuple):
    """One rule: its value for some chips from a version on, and the public file that shows it.

    `only` is the network whose files alone show it, "" where there are several.
    """

    name: str
    since: str
    chips: tuple[str, ...]
    value: Any
    source: str
    only: str = ""


class Rules(NamedTuple):
    """What a version of NXP's converter does for a chip; `shown_by` is the newest version with a public file, "" if none is.

    `tail` are operators that stay on the CPU after the last layer, `left` wherever they are. `pads_output` says what happens to
    a last layer whose channels do not fill the array: nothing, padded weights, a call that pads, or one more that slices.
    `microcode` is bytes of the header, per call, more per call that moves data, and per depth-wise channel; `kernels` bytes of
    kernels in the file, once and for each kind.
    """

    version: str
    shown_by: str
    tail: tuple[str, ...]
    left: tuple[str, ...]
    pads_input: bool
    pads_output: str
    scratch: bool
    interpreter_bytes: int
    fills_inputs: bool
    tap_multiple: int
    spread_first: bool
    first_copies: int
    weight_share: float
    prefetch_bytes: int
    microcode: tuple[float, ...]
    kernels: tuple[int, ...]

    def note(self, chip: str) -> str:
        """Return the sentence that says which files these rules come from; "" where it is the version itself."""
        if not self.shown_by:
            return f"no file that NXP's converter made for {chip} is public: rules of other chips stand in"
        if self.shown_by == self.version:
            return ""
        return f"no file of converter {self.version} for {chip} is public: rules of {self.shown_by} stand in"


@cache
def table() -> tuple[Rule, ...]:
    """Return all rules, in the order of the file."""
    return tuple(
        Rule(one["name"], one["since"], tuple(one["chips"]), _freeze(one["value"]), one["source"], one.get("only", ""))
        for one in _file()["rule"]
    )


@cache
def rules(chip: str, version: str = SDK_VERSIONS[-1], without: str = "") -> Rules:
    """Return the rules of a version for a chip: those of the newest public files up to it, else of the chip's oldest ones.

    A chip without public files has the rules for all chips. `without` is a network whose files are left out.
    """
    names = set(Rules._fields) - {"version", "shown_by"}
    public = _file()["public"].get(chip, ())
    shown_by = max((one for one in public if _before(one, version)), key=VERSIONS.index, default="".join(public[:1]))
    by = shown_by if shown_by and _before(version, shown_by) else version
    return Rules(version, shown_by, **{name: rule(name, chip, by, without).value for name in names})


def rule(name: str, chip: str, version: str, without: str = "") -> Rule:
    """Return the rule of that name that holds for a chip in a version; `without` is as in `rules`.

    Example:
        >>> rule("pads_output", "imxrt700", "3.0").value
        'sliced'
    """
    known = [
        one
        for one in table()
        if one.name == name and _before(one.since, version) and not (without and one.only == without)
    ]
    for kind in (chip, EVERY_CHIP):
        found = [one for one in known if kind in one.chips]
        if found:
            return max(found, key=lambda one: VERSIONS.index(one.since))
    raise KeyError(name)


def version_of(converter: str) -> str:
    """Return the rules' version for a version of NXP's converter: the newest for "" and for one that is not known yet.

    Example:
        >>> version_of("1.2.0+0X1c933f1b"), version_of("2.1.3"), version_of("")
        ('1.2', '2.x', '3.2')
    """
    found = [one for one in VERSIONS if converter.startswith(one.partition("-")[0].rstrip("x"))]
    return found[-1] if found else VERSIONS[-1]


@cache
def _file() -> dict[str, Any]:
    with open(os.path.join(os.path.dirname(__file__), TABLE), "rb") as file:
        return tomllib.load(file)


def _before(since: str, version: str) -> bool:
    return VERSIONS.index(since) <= VERSIONS.index(version)


def _freeze(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
