"""Conversions of partitions, each made once: what was tried or weighed while partitioning is what is delivered.

The three ask at different times, and ExecuTorch hands nothing from one to the other, so results are found by content.

Example:
    >>> result = converted(litert, conversion_options(options))
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import OrderedDict
from typing import NamedTuple

from openneutron.convert import answered, convert_alone
from openneutron.options import Options
from openneutron.result import Result

_KEPT, _KEPT_BYTES = 8, 32 << 20  # results: so many, and more while their models are small


class _Kept(NamedTuple):
    result: Result
    answered: bool  # it says what NXP's converter would do


_results: OrderedDict[tuple[str, str], _Kept] = OrderedDict()


def converted(litert: bytes, options: Options) -> Result:
    """Convert a partition, or give the result of the first time that the same bytes and options were asked for."""
    result = tried(litert, options)
    key = _key(litert, options)
    if not _results[key].answered:
        result = answered(result, litert, options)
        _keep(key, _Kept(result, answered=True))
    return result


def tried(litert: bytes, options: Options) -> Result:
    """As `converted`, where the report need not say what NXP's converter would do; most trials are not delivered."""
    key = _key(litert, options)
    if key not in _results:
        _keep(key, _Kept(convert_alone(litert, options), answered=False))
    _results.move_to_end(key)
    found = _results[key].result
    return dataclasses.replace(found, report=dataclasses.replace(found.report, source=options.source))


def remember(litert: bytes, options: Options, result: Result) -> None:
    """Keep a result of `tried` that a conversion with other options is known to equal."""
    _keep(_key(litert, options), _Kept(result, answered=False))


def _keep(key: tuple[str, str], kept: _Kept) -> None:
    _results[key] = kept
    while len(_results) > _KEPT and sum(len(one.result.model) for one in _results.values()) > _KEPT_BYTES:
        _results.popitem(last=False)


def forget() -> None:
    """Start anew: another program, perhaps another converter behind the same name."""
    _results.clear()


def as_one_graph(options: Options) -> Options:
    """Options for a partition of the open converter: what is worth a graph was decided by partitioning, views included."""
    return dataclasses.replace(options, one_graph=True) if options.converter == "open" else options


def _key(litert: bytes, options: Options) -> tuple[str, str]:
    """Bytes and options; the name of the source and the number of the partition change nothing."""
    return hashlib.sha256(litert).hexdigest(), repr(dataclasses.replace(options, source="", partition=0))
