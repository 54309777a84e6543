"""Options that let the partitioner delegate more than it does by default."""

from __future__ import annotations

from dataclasses import dataclass, fields

from openneutron.errors import OptionError


@dataclass(frozen=True)
class CustomDelegationOptions:
    """Options for delegation; the defaults delegate only what saves time for certain.

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
