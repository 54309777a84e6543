"""What the partitioner may do beyond its defensive defaults."""

from __future__ import annotations

from dataclasses import dataclass, fields

from openneutron.errors import OptionError


@dataclass(frozen=True)
class CustomDelegationOptions:
    """Opt-ins for delegation; the defaults delegate only what certainly pays.

    `allow_no_op_partitions` also delegates partitions that move no data and compute nothing (reshapes alone).

    Example:
        >>> NeutronPartitioner(spec, custom_delegation_options=CustomDelegationOptions(allow_no_op_partitions=True))
    """

    allow_no_op_partitions: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, bool):
                raise OptionError(
                    f"{field.name} is {value!r}", where="CustomDelegationOptions", hint="use True or False"
                )
