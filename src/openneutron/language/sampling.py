"""Choice of the next token from its logits.

Example:
    >>> choose = Sampling(temperature=0.8, top_p=0.9).chooser(seed=1)
    >>> choose(logits)
    17
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from openneutron.errors import OptionError
from openneutron.language.decoder import Logits


@dataclass(frozen=True)
class Sampling:
    """How to choose: with temperature 0 the likeliest token, else one of those that together have the share `top_p`."""

    temperature: float = 0.0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise OptionError(f"temperature is {self.temperature}", hint="give 0 or more")
        if not 0 < self.top_p <= 1:
            raise OptionError(f"top_p is {self.top_p}", hint="give more than 0 and at most 1")

    def chooser(self, seed: int) -> Callable[[Logits], int]:
        """Return the function that chooses; one seed chooses the same from the same logits."""
        source = np.random.default_rng(seed)
        return lambda logits: self._choose(logits, source)

    def _choose(self, logits: Logits, source: np.random.Generator) -> int:
        if not self.temperature:
            return int(logits.argmax())
        scaled = logits.astype(np.float64) / self.temperature
        shares = np.exp(scaled - scaled.max())
        shares /= shares.sum()
        order = np.argsort(-shares, kind="stable")
        before = np.cumsum(shares[order]) - shares[order]
        kept = order[before < self.top_p]
        return int(source.choice(kept, p=shares[kept] / shares[kept].sum()))
