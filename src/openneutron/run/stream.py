"""Run a model on a stream, frame after frame; state is kept between frames.

Arrays of a stream have one more leading axis than the model's, the frames; so have the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.errors import OptionError
from openneutron.litert.graph import Tensor
from openneutron.run.given import bind_inputs
from openneutron.run.runner import RunResult

Array = npt.NDArray[Any]


def frames_of(
    tensors: Sequence[Tensor], arrays: Sequence[Array] | Mapping[str, Array], *, source: str
) -> list[list[Array]]:
    """Return the inputs of each frame in the model's order; an `OptionError` names the array that does not fit.

    Example:
        >>> frames_of(runner.inputs, {"frame": np.zeros((50, 1, 3, 40), np.int8)}, source="wake.tflite")
    """
    named = arrays if isinstance(arrays, Mapping) else {f"input {at}": array for at, array in enumerate(arrays)}
    counts = {name: array.shape[0] if array.ndim else 0 for name, array in named.items()}
    if len(set(counts.values())) > 1:
        given = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise OptionError(f"the arrays differ in frames: {given}", where=source, hint="give each the same leading axis")
    count = next(iter(counts.values()), 0)
    if count == 0:
        raise OptionError("there are no frames", where=source, hint="arrays of a stream have one more leading axis")
    frames: list[list[Array]] = []
    for at in range(count):
        one: Any = (
            {name: array[at] for name, array in arrays.items()}
            if isinstance(arrays, Mapping)
            else [array[at] for array in arrays]
        )
        frames.append(bind_inputs(tensors, one, source=f"{source}, frame {at}"))
    return frames


def run_stream(run: Callable[[list[Array]], RunResult], frames: Sequence[list[Array]]) -> RunResult:
    """Run all frames; return their stacked outputs and the cycles of the slowest frame.

    Example:
        >>> run_stream(LiteRtRunner(data).run, frames).outputs["probability"].shape
        (50, 1, 1)
    """
    results = [run(frame) for frame in frames]
    outputs = {name: np.stack([one.outputs[name] for one in results]) for name in results[0].outputs}
    return RunResult(outputs, max(one.cycles for one in results))
