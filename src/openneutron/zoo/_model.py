"""Types of a zoo model; free of torch and numpy at run time, so that listing the zoo stays fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from openneutron.errors import OpenNeutronError, OptionError

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray


class UnknownModelError(OptionError):
    """Raised for an unknown zoo model; the message lists the known ones."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        import difflib

        near = difflib.get_close_matches(name, known, n=1)
        super().__init__(
            f"the zoo has no model {name!r}; it has {', '.join(known)}",
            hint=f"did you mean {near[0]!r}?" if near else "",
        )
        self.name = name
        self.known = tuple(known)


@dataclass(frozen=True)
class LabelledImages:
    """Images as uint8 [N, H, W, C], class numbers as uint8 [N], and the function that makes model inputs of images."""

    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]
    preprocess: Callable[[NDArray[np.uint8]], torch.Tensor]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def inputs(self) -> torch.Tensor:
        """All images as model input, float32 [N, C, H, W]."""
        return self.preprocess(self.images)


@dataclass(frozen=True)
class ZooModel:
    """One network, ready to compile: ``openneutron.compile(m.model, m.example_inputs, calibration=m.calibration)``.

    ``trained`` is False for networks whose weights are seeded random numbers: their cycles and memory are meaningful, their
    outputs are not. ``constants`` are what a language model's program tells its runners by name.
    """

    name: str
    description: str
    model: torch.nn.Module
    example_inputs: tuple[torch.Tensor, ...]
    calibration: list[tuple[torch.Tensor, ...]]
    trained: bool
    test_set: Callable[[], LabelledImages] | None = field(default=None, repr=False)
    test_tokens: Callable[[], Sequence[Sequence[int]]] | None = field(default=None, repr=False)
    constants: Mapping[str, int | list[int]] = field(default_factory=dict)

    @property
    def test_sequences(self) -> Sequence[Sequence[int]]:
        """The sequences of tokens that a language model is measured on; none for others."""
        return () if self.test_tokens is None else self.test_tokens()

    def test_images(self) -> LabelledImages:
        """Load and return the labelled test images.

        >>> from openneutron import zoo
        >>> len(zoo.load("cifarnet").test_images())
        1000
        """
        if self.test_set is None:
            raise OpenNeutronError(f"the zoo model {self.name!r} has no labelled test images")
        return self.test_set()
