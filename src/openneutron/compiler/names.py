"""Kernel name → calling convention, for the stages that speak L1."""

from __future__ import annotations

from openneutron.compiler import kernels
from openneutron.microcode.abi import KernelAbi, by_name


def abi_of(name: str) -> KernelAbi:
    """The calling convention of the kernel of that name, whose file has been imported where a node calls it."""
    found = by_name(name)
    if found is None:
        kernels.rules()
        found = by_name(name)
    assert found is not None, f"there is no kernel {name}"
    return found
