"""Targets, and merging of kernel selections."""

from openneutron.compat.eiq import getNeutronTargets, isNeutronTarget, merge_kernel_selection_files

__all__ = ["getNeutronTargets", "isNeutronTarget", "merge_kernel_selection_files"]
