"""Variables that a model keeps between runs, and which variable each state of a NeutronGraph may be."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from openneutron.certify.read.litert import Tensor
from openneutron.certify.read.microcode import State

_ALIGNMENT = 16  # states are stored at multiples of this
_MOST_LOOKS = 4096  # comparisons of a state with a variable: many variables may have equal size and contents


@dataclass
class Variable:
    """A variable of a model: its contents before the first run, at the start of any run, and at its end."""

    initial: bytes | None = None
    start: array[int] | None = None
    end: array[int] | None = None

    @property
    def size(self) -> int:
        """Number of bytes that it holds."""
        return len(self.start or self.end or ())


def first_contents(tensor: Tensor) -> bytes:
    """Return the initial contents of a variable tensor in LiteRT: the zero point of INT8, zeros of any other type."""
    zero = tensor.quantization[1] & 0xFF if tensor.dtype == "INT8" else 0
    return bytes([zero]) * tensor.size


def assignments(states: Sequence[State], free: list[tuple[bytes, Variable]]) -> Iterator[tuple[bytes, ...]]:
    """Yield one variable per state, with the state's size and first contents; variables given first are tried first."""
    return _choose(states, free, iter(range(_MOST_LOOKS)))


def _choose(
    states: Sequence[State], free: list[tuple[bytes, Variable]], looks: Iterator[int]
) -> Iterator[tuple[bytes, ...]]:
    if not states:
        yield ()
        return
    for at, (name, variable) in enumerate(free):
        if next(looks, None) is None:
            return
        if _fits(states[0], variable):
            for rest in _choose(states[1:], free[:at] + free[at + 1 :], looks):
                yield name, *rest


def _fits(state: State, variable: Variable) -> bool:
    size = variable.size
    if not size <= len(state.initial) < size + _ALIGNMENT:
        return False
    return variable.initial is None or state.initial[:size] == variable.initial
