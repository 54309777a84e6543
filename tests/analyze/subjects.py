"""Compiled tiny models, ready to be looked into."""

from __future__ import annotations

import dataclasses

from openneutron.analyze.verify import Subject, border
from openneutron.convert import convert
from openneutron.litert.read import read_model
from openneutron.microcode.encode import encode_blocks
from openneutron.microcode.graph_op import blocks_of, is_graph_op
from openneutron.options import Options


def subject_of(model: bytes, target: str = "imxrt700", **options: object) -> Subject:
    """The first NeutronGraph of a model."""
    result = convert(model, Options(target=target, **options))  # type: ignore[arg-type]
    graph = read_model(result.model).main
    blocks = blocks_of(graph, next(op for op in graph.operators if is_graph_op(op)), outputs=1)
    source = read_model(model).main
    inputs, outputs = border(source, result.report, 0)
    layers = tuple(kernel for kernel in result.report.kernels if kernel.graph == 0)
    return Subject(0, "test", blocks.microcode, blocks.weights, blocks.kernels, source, inputs, outputs, layers)


def damaged(subject: Subject, kernel: str) -> Subject:
    """The same graph with one byte of that kernel's weights changed, and a checksum that fits."""
    from openneutron.microcode import abi
    from openneutron.microcode.walk import executed_calls

    program = subject.program()
    call = next(call for call, _, _ in executed_calls(program) if abi.by_id(call.kernel).name == kernel)
    operand = call.operands[[role.removesuffix("?") for role in abi.by_id(call.kernel).operands].index("weights")]
    weights = bytearray(program.weights)
    weights[operand.offset] ^= 0x40
    changed = dataclasses.replace(program, weights=bytes(weights))
    microcode, stored = encode_blocks(changed)
    return dataclasses.replace(subject, microcode=microcode, weights=stored)
