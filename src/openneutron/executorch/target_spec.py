"""Which chip to compile for, in the words of ExecuTorch users."""

from __future__ import annotations

from openneutron.machine import targets


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

    def get_name(self) -> str:
        """The target's name, in upstream's spelling."""
        return self.target.name

    def is_subsystem(self) -> bool:
        """True for Neutron-S, which has a controller of its own."""
        return self.target.subsystem

    def get_hw_version(self) -> int:
        """1 is N1, 2 is N3."""
        return self.target.hw_version

    def get_num_units(self) -> int:
        """Cores."""
        return self.target.cores

    def get_num_pipes(self) -> int:
        """Dot-product units of a core."""
        return self.target.units

    def get_num_macs(self) -> int:
        """Length of a dot product."""
        return self.target.length

    def __repr__(self) -> str:
        return f"NeutronTargetSpec({self.name!r})"
