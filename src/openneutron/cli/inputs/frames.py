"""What a command line gives a model to run on: one set of inputs, or a stream of frames; from files, sound, or random."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openneutron.errors import OptionError

if TYPE_CHECKING:
    from openneutron.litert.graph import Tensor

STREAM_HELP = ".npy or .npz with one more leading axis, the frames: run one after another, with state; or a .wav."
FRONT_END_HELP = "What makes frames of a .wav: script.py:function of its samples (and their rate)."


@dataclass(frozen=True)
class Given:
    """The options --input, --stream, --front-end and --seed, checked against each other.

    Example:
        >>> Given(stream=Path("frames.npz")).frames(runner.inputs, where="wake.tflite")
    """

    input: Path | None = None
    stream: Path | None = None
    front_end: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.stream is not None and self.input is not None:
            raise OptionError("--stream and --input were both given", hint="a stream is the input, frame by frame")
        sound = self.stream is not None and self.stream.suffix.lower() == ".wav"
        if sound != bool(self.front_end):
            raise OptionError(
                "a .wav needs --front-end, which says how frames are made of it"
                if sound
                else "--front-end is for a .wav",
                hint="`openneutron run model.tflite --stream hello.wav --front-end features.py:log_mel`",
            )

    @property
    def streams(self) -> bool:
        """Whether there are frames, be it one only."""
        return self.stream is not None

    def frames(self, tensors: Sequence[Tensor], *, where: str) -> list[list[Any]]:
        """The inputs of the one run, or of each frame, in the model's order."""
        from openneutron.analyze.data.arrays import read_arrays
        from openneutron.run.given import bind_inputs, random_inputs
        from openneutron.run.stream import frames_of

        if self.stream is None:
            arrays = random_inputs(tensors, seed=self.seed) if self.input is None else read_arrays(self.input)
            return [bind_inputs(tensors, arrays, source=where)]
        if self.front_end:
            from openneutron.cli.inputs.front_end import frames_of_sound

            return frames_of(tensors, frames_of_sound(self.stream, self.front_end, tensors), source=where)
        return frames_of(tensors, read_arrays(self.stream), source=where)


def number_inputs(inputs: Iterable[Any]) -> list[Tensor]:
    """The inputs of a `.pte`, which have no names there."""
    from openneutron.litert.graph import DType, Tensor

    return [Tensor(f"input_{at}", one.shape, DType(one.dtype)) for at, one in enumerate(inputs)]


def inputs_of(data: bytes, where: str) -> list[Tensor]:
    """What a `.pte` or a LiteRT model takes, in order."""
    from openneutron.files import kind_of
    from openneutron.litert.read import read_model
    from openneutron.microcode.pte import read_plan

    if kind_of(data) == "pte":
        return number_inputs(read_plan(data, where=where).inputs)
    graph = read_model(data, source=where).main
    return [graph.tensors[index] for index in graph.inputs]
