"""The operator around microcode has the attributes, blocks and spare outputs that the program says, and no more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openneutron.certify.read.graph_op import check_graph_op
from openneutron.certify.read.litert import Operator, Tensor
from openneutron.certify.read.microcode import Program
from openneutron.certify.refused import Refused
from openneutron.litert.flexbuffer import encode_map

ATTRIBUTES: dict[str, int | str] = {
    "calls": 2,
    "converter": "OpenNeutron 1.20.3",
    "format_version": 1,
    "kernels_bytes": 4,
    "microcode_bytes": 128,
    "prefetch_bytes": 64,
    "scratch_bytes": 32,
    "state_bytes": 8,
    "target": "imxrt700",
    "weights_bytes": 16,
}
OP = Operator(
    0,
    "CUSTOM",
    (0, 1, 2, 3),
    (4, 5),
    {},
    b"NeutronGraph",
    60,
    ("CUSTOM NeutronGraph", ("", ""), (), (encode_map(ATTRIBUTES), 0, 1, (), -1)),
)
SIZES = {("scratch", 0): 32, ("prefetch", 0): 64, ("state", 0): 8}
PROGRAM = Program("imxrt700", 1, 1, SIZES, (), (), 2, version=1 << 16 | 20 << 8 | 3)


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
        (replace(OP, intermediates=(1,)), blocks(), PROGRAM, 0, "options, a version, tensors or attributes of its own"),
        (replace(OP, attributes=("CUSTOM", *OP.attributes[1:])), blocks(), PROGRAM, 0, "of its own"),
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


@pytest.mark.parametrize("name", [*ATTRIBUTES, "more"])
def test_an_attribute_that_the_microcode_does_not_say_is_refused(name: str) -> None:
    value = ATTRIBUTES.get(name, 0)
    forged = encode_map(ATTRIBUTES | {name: value + 1 if isinstance(value, int) else f"{value}0"})
    op = replace(OP, attributes=(*OP.attributes[:3], (forged, *OP.attributes[3][1:])))
    with pytest.raises(Refused, match="attributes of its own"):
        check_graph_op(op, blocks(), PROGRAM, 0)


@pytest.mark.parametrize("stored", [b"", encode_map(ATTRIBUTES) + b"\0", encode_map(ATTRIBUTES)[:-1]])
def test_attributes_in_another_form_are_refused(stored: bytes) -> None:
    op = replace(OP, attributes=(*OP.attributes[:3], (stored, *OP.attributes[3][1:])))
    with pytest.raises(Refused, match="attributes of its own"):
        check_graph_op(op, blocks(), PROGRAM, 0)
