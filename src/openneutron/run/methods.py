"""What makes a quantized LiteRT model more accurate without any cycles.

Example:
    >>> Methods(Balance(0.5, 0.25), correct_bias=True).words
    ('channels equalized', 'biases corrected')
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
    """How channels are equalized, None for not at all, whether biases are corrected, and ranges cut to the usual."""

    balance: Balance | None = None
    correct_bias: bool = False
    cut_ranges: bool = False

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Methods:
        """Return the methods that `dataclasses.asdict` made a mapping of."""
        balance = stored.get("balance")
        return cls(
            Balance(**balance) if balance else None, bool(stored.get("correct_bias")), bool(stored.get("cut_ranges"))
        )

    @property
    def words(self) -> tuple[str, ...]:
        """What is done, for a note."""
        done = {
            "channels equalized": self.balance is not None,
            "biases corrected": self.correct_bias,
            "ranges cut to what is usual": self.cut_ranges,
        }
        return tuple(words for words, is_done in done.items() if is_done)
