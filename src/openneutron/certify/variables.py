"""What a model keeps from run to run, and which of it a state of a NeutronGraph may be."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from openneutron.certify.read.litert import Tensor
from openneutron.certify.read.microcode import State

_ALIGNMENT = 16  # states are kept at multiples of this
_MOST_LOOKS = 4096  # at a variable for a state: variables that look alike may be many


@dataclass
class Variable:
    """A variable of a model: what it holds before the first run, at the start of any run, and at its end."""

    initial: bytes | None = None
    start: array[int] | None = None
    end: array[int] | None = None

    @property
    def size(self) -> int:
        """Bytes it holds."""
        return len(self.start or self.end or ())


def first_contents(tensor: Tensor) -> bytes:
    """What LiteRT fills a variable tensor with: the zero point of INT8, zeros of any other type."""
    zero = tensor.quantization[1] & 0xFF if tensor.dtype == "INT8" else 0
    return bytes([zero]) * tensor.size


def assignments(states: Sequence[State], free: list[tuple[bytes, Variable]]) -> Iterator[tuple[bytes, ...]]:
    """A variable for each state, of its size and first contents; those in the order given come first."""
    return _chosen(states, free, iter(range(_MOST_LOOKS)))


def _chosen(
    states: Sequence[State], free: list[tuple[bytes, Variable]], looks: Iterator[int]
) -> Iterator[tuple[bytes, ...]]:
    if not states:
        yield ()
        return
    for at, (name, variable) in enumerate(free):
        if next(looks, None) is None:
            return
        if _fits(states[0], variable):
            for rest in _chosen(states[1:], free[:at] + free[at + 1 :], looks):
                yield name, *rest


def _fits(state: State, variable: Variable) -> bool:
    size = variable.size
    if not size <= len(state.initial) < size + _ALIGNMENT:
        return False
    return variable.initial is None or state.initial[:size] == variable.initial
