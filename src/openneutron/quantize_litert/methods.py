"""What makes a quantized LiteRT model more accurate without any cycles.

Example:
    >>> Methods(Balance(0.5, 0.25), round_weights=True).words
    ('channels equalized', 'weights rounded by samples')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from openneutron.litert.passes.equalize_channels import Balance

# From what follows the weights as much as the ranges to what follows the ranges alone; each is quantized and run once.
BALANCES: Final = (Balance(0.5, 0.5), Balance(0.5, 0.25), Balance(0.5, 0.0), Balance(0.75, 0.25), Balance(1.0, 0.0))


@dataclass(frozen=True)
class Methods:
    """How channels are equalized (None: not), whether weights are rounded by what samples hold, and ranges that change.

    `ranges` has a tensor's name and by what share of the range its low and high end move outward, see `fit_ranges`.
    """

    balance: Balance | None = None
    round_weights: bool = False
    ranges: tuple[tuple[str, float, float], ...] = ()

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Methods:
        """Return the methods that `dataclasses.asdict` made a mapping of."""
        balance = stored.get("balance")
        return cls(
            Balance(**balance) if balance else None,
            bool(stored.get("round_weights")),
            tuple((str(name), float(low), float(high)) for name, low, high in stored.get("ranges", ())),
        )

    @property
    def words(self) -> tuple[str, ...]:
        """What is done, for a note."""
        done = {
            "channels equalized": self.balance is not None,
            "weights rounded by samples": self.round_weights,
            "ranges fitted to the noise at the outputs": bool(self.ranges),
        }
        return tuple(words for words, is_done in done.items() if is_done)
