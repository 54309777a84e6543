"""Kernel name → calling convention, for the stages that speak L1."""

from __future__ import annotations

from functools import cache

from openneutron.compiler import kernels
from openneutron.microcode.abi import KernelAbi, all_kernels


@cache
def _table() -> dict[str, KernelAbi]:
    kernels.rules()
    return {kernel.name: kernel for kernel in all_kernels()}


def abi_of(name: str) -> KernelAbi:
    """The calling convention of the kernel of that name."""
    return _table()[name]
