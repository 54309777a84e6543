"""Files with NXP's layout and a foreign version word, built from public facts alone: what their converter could return."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from openneutron.litert import DType, Graph, Model, Operator, Tensor

MAGIC = 0x64434D6E
VERSION_WORD = 0x1234ABCD  # any value that is not ours
CODE = bytes(range(48))  # stands for instructions that only NXP's firmware understands


def microcode(
    *,
    inputs: int = 1,
    outputs: int = 1,
    weights: int = 64,
    kernels: int = 1,
    scratch: int = 256,
    sram: int = 0,
    calls: int = 3,
    profiling: bool = False,
) -> bytes:
    """A microcode block whose words 0-14 are as public documents give them."""
    size = 15 * 4 + len(CODE)
    words = [MAGIC, VERSION_WORD, 0, 0, 0, 0, size, weights, kernels]
    if profiling:
        words += [scratch, 0x8000_0000 | 16 * calls, 32, sram, inputs, outputs]
    else:
        words += [scratch, sram, inputs, outputs, calls, 0]
    return struct.pack("<15I", *words) + CODE


def converted(original: Model, *, left: Sequence[int] = (), permuted: bool = False, profiling: bool = False) -> Model:
    """`original` with its operators in one NeutronGraph, those at the end named by `left` staying as they are."""
    graph = original.main
    stay = [graph.operators[i] for i in left]
    needed = [*graph.outputs, *(t for op in stay for t in op.inputs)]
    made = {t for i, op in enumerate(graph.operators) if i not in left for t in op.outputs}
    outputs = list(dict.fromkeys(t for t in needed if t in made))
    if permuted:
        outputs.reverse()
    tensors = [Tensor(t.name, t.shape, t.dtype, t.quantization, t.data) for t in graph.tensors]

    def add(name: str, size: int, data: bytes | None = None) -> int:
        array = None if data is None else np.frombuffer(data, np.uint8)
        tensors.append(Tensor(name, (size,), DType.UINT8, None, array))
        return len(tensors) - 1

    block = microcode(inputs=len(graph.inputs), outputs=len(outputs), profiling=profiling)
    constants = [add("NeutronMicrocode", len(block), block), add("NeutronWeights", 64, bytes(64))]
    constants.append(add("NeutronKernels", 1, bytes(1)))
    spare = [add("NeutronScratch", 256)]
    if profiling:
        spare += [add("NeutronProfile", 48), add("NeutronDebug", 32)]
    npu = Operator("CUSTOM", [*graph.inputs, *constants], [*outputs, *spare], custom_code="NeutronGraph")
    ends = list(reversed(graph.outputs)) if permuted else list(graph.outputs)
    description = "Converted with eIQ neutron-converter 9.8.7+0X1234abcd for a test."
    return Model([Graph(graph.name, tensors, [npu, *stay], list(graph.inputs), ends)], description)
