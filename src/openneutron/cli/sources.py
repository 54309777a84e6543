"""Compiling what a command line names, for the commands beside `compile` that start from a source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from openneutron.program import Program


def is_litert(source: str) -> bool:
    """Whether a source is a LiteRT file; an error says why when it is nothing that can be compiled."""
    from openneutron.cli.compile import _is_litert

    return _is_litert(source)


def compile_source(source: str, stage: Callable[[str], None], **options: Any) -> Program:
    """The source compiled as `openneutron compile` does it; `options` are those of `openneutron.compile`.

    Example:
        >>> compile_source("cifarnet", print, target="imxrt700").report.totals.cycles
    """
    from openneutron.cli.compile import _compile

    options.setdefault("channels_last", False)
    return _compile(source, is_litert(source), stage, **options)
