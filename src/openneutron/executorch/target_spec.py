"""Which chip to compile for, in the words of ExecuTorch users."""

from __future__ import annotations

from openneutron import targets


class NeutronTargetSpec:
    """A target by name; the wrong name is an `OptionError` that lists the known ones.

    Example:
        >>> NeutronTargetSpec("imxrt700").target.macs_per_cycle
        64
    """

    def __init__(self, target: str) -> None:
        self.target = targets.load(target)

    @property
    def name(self) -> str:
        """The target's name."""
        return self.target.name

    def __repr__(self) -> str:
        return f"NeutronTargetSpec({self.name!r})"
