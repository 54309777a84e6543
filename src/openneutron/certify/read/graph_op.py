"""Checks the custom operator that holds microcode: no attributes, and blocks and extra outputs of the expected sizes."""

from __future__ import annotations

from openneutron.certify.read.litert import Operator, Tensor
from openneutron.certify.read.microcode import Program
from openneutron.certify.refused import Refused

_ATTRIBUTES = ("CUSTOM NeutronGraph", ("", ""), (), (b"", 0, 1, (), -1))  # version 1, without options
_NAMES = ("microcode", "weights", "kernels", "scratch", "profile", "debug")
_PROFILE_RECORD = 16  # bytes that one call writes


def check_graph_op(op: Operator, tensors: list[Tensor], program: Program, number: int) -> None:
    """Refuse NeutronGraph `number` with options, or with blocks or extra outputs of an unexpected name, type or size.

    `tensors` are its three blocks, scratch, and with profiling the records and the debug output.
    """
    if op.attributes != _ATTRIBUTES or op.intermediates:
        raise Refused("a NeutronGraph has options, a version or tensors of its own", op.offset)
    sizes = [len(one.data or b"") for one in tensors[:3]] + [program.sizes["scratch", 0]]
    if program.profiling:
        sizes += [_PROFILE_RECORD * program.calls, 1]
    if len(sizes) != len(tensors):
        raise Refused(
            f"a NeutronGraph has {len(tensors) - 3} outputs beside its results, not {len(sizes) - 3}", op.offset
        )
    for name, size, tensor in zip(_NAMES, sizes, tensors, strict=False):
        wanted = Tensor(f"neutron_{number}_{name}", (max(size, 1),), "UINT8", more=(False, (), ()))
        if (tensor.name, tensor.form, tensor.open_shape) != (wanted.name, wanted.form, ()):
            raise Refused(f"{tensor.name!r} is not {wanted.name!r} of {size} bytes", op.offset)
