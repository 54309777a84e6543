"""What a runner says: tensors and layers of the loaded model, and the outputs and time of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from openneutron.errors import BoardError

Progress = Callable[[str], None]


def no_progress(text: str) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class BoardTensor:
    """An input or output as the board describes it; `dim_order` lists the dimensions from slowest to fastest in memory."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    dim_order: tuple[int, ...] = ()
    scale: float = 0.0
    zero_point: int = 0


@dataclass(frozen=True)
class BoardLayer:
    """The time of one operator in the last run; `unit` is NPU or CPU."""

    name: str
    kind: str
    unit: str
    microseconds: float


@dataclass(frozen=True)
class BoardModel:
    """The loaded model; sizes that the runner does not report are 0, and `layers` is empty where it gives no times."""

    inputs: tuple[BoardTensor, ...]
    outputs: tuple[BoardTensor, ...]
    arena_bytes: int = 0
    model_bytes: int = 0
    microseconds: float = 0.0
    layers: tuple[BoardLayer, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether no model is loaded."""
        return not self.outputs


@dataclass(frozen=True)
class BoardOutput:
    """One output of a run: its bytes as they lay in the board's memory."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    data: bytes

    def array(self, dim_order: Sequence[int] = ()) -> npt.NDArray[Any]:
        """Return the values with the output's shape; `dim_order` is how they lay in memory."""
        values = np.frombuffer(self.data, storage(self.dtype))
        order = tuple(dim_order) or tuple(range(len(self.shape)))
        stored = values.reshape([self.shape[axis] for axis in order])
        return np.ascontiguousarray(stored.transpose(np.argsort(order))) if order else stored.reshape(())


@dataclass(frozen=True)
class BoardRun:
    """Outputs, and the time that the board measured; `retries` counts requests that were repeated because of noise."""

    outputs: tuple[BoardOutput, ...]
    microseconds: float
    retries: int = 0


class Runner(Protocol):
    """A connection to a runner; `protocol` is its name, `where` the port."""

    protocol: str
    where: str

    def info(self) -> BoardModel:
        """Describe the loaded model."""
        ...

    def load_model(self, data: bytes, progress: Progress = no_progress) -> None:
        """Upload a model and let the board prepare it."""
        ...

    def run(self, inputs: Sequence[bytes], *, times: int = 1, progress: Progress = no_progress) -> BoardRun:
        """Upload the inputs, run and return all outputs; with several `times`, the time is their mean."""
        ...

    def close(self) -> None:
        """Give the port back."""
        ...

    def __enter__(self) -> Runner: ...

    def __exit__(self, *details: object) -> None: ...


def storage(dtype: str) -> np.dtype[Any]:
    """Return the numpy type that holds elements of this type; bfloat16, which numpy lacks, as its 16 bits."""
    return np.dtype("uint16" if dtype == "bfloat16" else dtype)


def check_bytes(dtype: str, shape: Sequence[int], size: int, what: str, where: str) -> None:
    """Raise a `BoardError` unless a tensor of this type and shape has so many bytes."""
    wanted = math.prod(shape) * storage(dtype).itemsize
    if min(shape, default=1) < 0 or wanted != size:
        raise BoardError(
            f"{what} has {size:,} bytes, which is not {dtype} {list(shape)}", where=where,
            hint="reset the board and try again",
        )  # fmt: skip


def report_progress(pieces: Sequence[bytes], what: str, progress: Progress) -> Iterator[bytes]:
    """Yield pieces of an upload, and report how many bytes are gone."""
    total, done = sum(map(len, pieces)), 0
    for piece in pieces:
        progress(f"{what}: {done:,} of {total:,} bytes")
        yield piece
        done += len(piece)
