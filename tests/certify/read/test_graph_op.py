"""The operator around microcode has blocks and spare outputs of the name and size that the program says, and no more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openneutron.certify.read.graph_op import check_graph_op
from openneutron.certify.read.litert import Operator, Tensor
from openneutron.certify.read.microcode import Program
from openneutron.certify.refused import Refused

OP = Operator(
    0,
    "CUSTOM",
    (0, 1, 2, 3),
    (4, 5),
    {},
    b"NeutronGraph",
    60,
    ("CUSTOM NeutronGraph", ("", ""), (), (b"", 0, 1, (), -1)),
)
PROGRAM = Program("imxrt700", 1, 1, {("scratch", 0): 32}, (), (), 2)


def blocks(**sizes: int) -> list[Tensor]:
    all_sizes = {"microcode": 128, "weights": 16, "kernels": 4, "scratch": 32} | sizes
    return [
        Tensor(
            f"neutron_0_{name}",
            (size,),
            "UINT8",
            data=memoryview(bytes(size)) if at < 3 else None,
            more=(False, (), ()),
        )
        for at, (name, size) in enumerate(all_sizes.items())
    ]


def test_what_the_compiler_writes_is_accepted() -> None:
    check_graph_op(OP, blocks(), PROGRAM, 0)
    check_graph_op(OP, blocks(profile=32, debug=1), replace(PROGRAM, profiling=True), 0)


@pytest.mark.parametrize(
    ("op", "tensors", "program", "number", "why"),
    [
        (replace(OP, intermediates=(1,)), blocks(), PROGRAM, 0, "options, a version or tensors of its own"),
        (replace(OP, attributes=("CUSTOM", ("", ""), (), (b"x", 0, 1, (), -1))), blocks(), PROGRAM, 0, "of its own"),
        (OP, blocks(scratch=33), PROGRAM, 0, "is not 'neutron_0_scratch' of 32 bytes"),
        (OP, blocks(), PROGRAM, 1, "is not 'neutron_1_microcode'"),
        (OP, blocks(profile=32), PROGRAM, 0, "2 outputs beside its results, not 1"),
        (OP, [*blocks()[:3], replace(blocks()[3], dtype="INT8")], PROGRAM, 0, "is not 'neutron_0_scratch'"),
        (OP, [*blocks()[:3], replace(blocks()[3], open_shape=(-1,))], PROGRAM, 0, "is not 'neutron_0_scratch'"),
    ],
)  # fmt: skip
def test_anything_else_is_refused(op: Operator, tensors: list[Tensor], program: Program, number: int, why: str) -> None:
    with pytest.raises(Refused, match=why) as refusal:
        check_graph_op(op, tensors, program, number)
    assert refusal.value.offset == 60
