"""MAXIMUM and MINIMUM with broadcasting, on stored values."""

from __future__ import annotations

from dataclasses import dataclass

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import not_empty
from openneutron.compiler.kernels.elementwise import broadcasts, emit_binary, two_inputs
from openneutron.compiler.kernels.movement import all_moved_type
from openneutron.compiler.legalizer import Legalizer
from openneutron.microcode.abi import KernelAbi, param, register


@dataclass(frozen=True)
class MinmaxParams:
    """Parameters of a `minmax` call."""

    minimum: int = param("0 takes the larger, 1 the smaller value")


ABI = register(
    KernelAbi(
        id=20,
        name="minmax",
        abi=1,
        operands=("input1", "input2", "output"),
        params=MinmaxParams,
        cost="element",
        meaning="the larger or smaller stored value of two 8-bit tensors, which broadcast",
    )
)


@serves("MAXIMUM", "MINIMUM", limits=(not_empty, two_inputs, all_moved_type, broadcasts))
def legalize(state: Legalizer) -> None:
    """Emit the kernel, which ignores scales like the reference (docs/numerics.md, Minimum and maximum)."""
    emit_binary(state, ABI.name, MinmaxParams(int(state.op.code == "MINIMUM")))
