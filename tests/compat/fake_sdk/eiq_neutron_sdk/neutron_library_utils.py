"""Names of targets."""

from eiq_neutron_sdk._fake import getNeutronTargets, isNeutronTarget

__all__ = ["getNeutronTargets", "isNeutronTarget"]
