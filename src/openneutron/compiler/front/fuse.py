"""Fuse: the list of L1 passes, in order. Each can be switched off by name; L1's specification is checked after each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from openneutron.compiler import l1
from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.passes.chunk_weights import chunk_weights
from openneutron.compiler.passes.drop_unused import drop_unused
from openneutron.compiler.passes.elide_concat import elide_concat
from openneutron.compiler.passes.elide_slice import elide_slice
from openneutron.compiler.passes.fuse_copies import fuse_copies
from openneutron.compiler.passes.fuse_lut import fuse_lut
from openneutron.compiler.passes.fuse_pad import fuse_pad
from openneutron.compiler.passes.merge_pixels import merge_pixels
from openneutron.compiler.passes.roll_copies import roll_copies
from openneutron.compiler.passes.roll_steps import roll_steps
from openneutron.compiler.passes.stream_pooling import stream_pooling
from openneutron.compiler.passes.tabulate import tabulate
from openneutron.errors import OptionError
from openneutron.machine.targets import Target

PASSES: tuple[Callable[[KernelGraph, Target], int], ...] = (
    fuse_copies,
    fuse_pad,
    tabulate,
    fuse_lut,
    roll_steps,
    elide_concat,
    elide_slice,
    merge_pixels,
    stream_pooling,
    drop_unused,
    roll_copies,
)
# These replace the passes of the same name where memory matters more than cycles.
THRIFTY: dict[Callable[[KernelGraph, Target], int], Callable[[KernelGraph, Target], int]] = {
    stream_pooling: partial(stream_pooling, everywhere=True)
}
# Only for programs that copy their constants before use.
FETCH_PASSES: tuple[Callable[[KernelGraph, Target], int], ...] = (chunk_weights,)
# Not passes on L1: these choose how the program is stored, in `compiler/back/store.py`.
CODE_WEIGHTS, PACK_CODE = "code_weights", "pack_code"


def names() -> list[str]:
    """Names of the passes that can be switched off, in the order they run."""
    return [*(one.__name__ for one in (*PASSES, *FETCH_PASSES)), CODE_WEIGHTS, PACK_CODE]


def fuse(
    graph: KernelGraph,
    target: Target,
    switched_off: tuple[str, ...] = (),
    *,
    fetch_constants: bool = False,
    thrifty: bool = False,
) -> dict[str, int]:
    """Run the passes; returns how often each acted. `thrifty` spends cycles where that saves memory.

    Example:
        >>> fuse(graph, target, switched_off=("fuse_lut",))
    """
    unknown = sorted(set(switched_off) - set(names()))
    if unknown:
        raise OptionError(f"unknown pass {', '.join(unknown)}", hint=f"passes are {', '.join(names())}")
    counts: dict[str, int] = {}
    for one in (*PASSES, *(FETCH_PASSES if fetch_constants else ())):
        if one.__name__ not in switched_off:
            step = THRIFTY.get(one, one) if thrifty else one
            counts[one.__name__] = step(graph, target)
            l1.check(graph)
    return counts
