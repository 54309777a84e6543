"""Conversions of partitions, each made once: what was tried or weighed while partitioning is what is delivered.

The three ask at different times, and ExecuTorch hands nothing from one to the other, so results are found by content.

Example:
    >>> result = converted(litert, conversion_options(options))
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import OrderedDict
from typing import Final

from openneutron.convert import convert
from openneutron.options import Options
from openneutron.result import Result

_KEPT: Final = 8  # results; a program rarely has more partitions, and each may hold megabytes
_results: OrderedDict[tuple[str, str], Result] = OrderedDict()


def converted(litert: bytes, options: Options) -> Result:
    """Convert a partition, or give the result of the first time that the same bytes and options were asked for."""
    key = _key(litert, options)
    if key not in _results:
        remember(litert, options, convert(litert, options))
    _results.move_to_end(key)
    found = _results[key]
    return dataclasses.replace(found, report=dataclasses.replace(found.report, source=options.source))


def remember(litert: bytes, options: Options, result: Result) -> None:
    """Keep a result that a conversion with other options is known to equal."""
    _results[_key(litert, options)] = result
    while len(_results) > _KEPT:
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
