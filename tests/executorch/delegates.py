"""Programs for tests of the runtime: a payload in a `.pte` without quantizer, partitioner or backend in between."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from executorch.exir import schema
from executorch.exir._serialize import _PTEFile, _serialize_pte_binary
from executorch.exir.scalar_type import ScalarType
from torch import Tensor

from openneutron import __version__
from openneutron.convert import convert
from openneutron.litert.build import GraphBuilder
from openneutron.litert.graph import DType, Model
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.microcode.graph_op import Compiled, blocks_of
from openneutron.microcode.payload import BACKEND_ID, build_payload
from openneutron.options import Options

VALID = 1  # LiteRT's padding: windows stay inside the image


_SCALAR_TYPES = {torch.int8: ScalarType.CHAR, torch.uint8: ScalarType.BYTE, torch.float32: ScalarType.FLOAT}


def is_channels_last(tensor: Tensor) -> bool:
    """Whether the memory order really is channels-last, which one-channel and one-pixel tensors leave open."""
    if tensor.dim() != 4 or tensor.is_contiguous():
        return False
    return tensor.is_contiguous(memory_format=torch.channels_last)


def program_of(
    payloads: Sequence[bytes],
    inputs: Sequence[Tensor],
    outputs: Sequence[Sequence[Tensor]],
    *,
    misaligned: int = 0,
) -> bytes:
    """A `.pte` that chains delegates: the outputs of one are the inputs of the next.

    Tensors are examples of shape, type and order. `misaligned` shifts them in the memory plan by so many bytes, and
    their payloads in the file. Written from the schema, because exporting takes seconds.
    """
    tensors: list[Tensor] = [*inputs, *(tensor for made in outputs for tensor in made)]
    values, end = [], 0
    for tensor in tensors:
        values.append(schema.EValue(_planned(tensor, end + misaligned)))
        end += -(-(tensor.nbytes + misaligned) // 16) * 16
    calls, first, at = [], 0, len(inputs)
    for index, made in enumerate(outputs):
        arguments = list(range(first, at + len(made)))
        calls.append(schema.Instruction(schema.DelegateCall(delegate_index=index, args=arguments)))
        first, at = at, at + len(made)
    plan = schema.ExecutionPlan(
        name="forward",
        container_meta_type=schema.ContainerMetadata(encoded_inp_str="", encoded_out_str=""),
        values=values,
        inputs=list(range(len(inputs))),
        outputs=list(range(first, at)),
        chains=[schema.Chain(inputs=[], outputs=[], instructions=calls, stacktrace=None)],
        operators=[],
        delegates=[
            schema.BackendDelegate(
                id=BACKEND_ID,
                processed=schema.BackendDelegateDataReference(location=schema.DataLocation.INLINE, index=index),
                compile_specs=[],
            )
            for index in range(len(payloads))
        ],
        non_const_buffer_sizes=[0, end],
    )
    # The runtime wants a segment of constants; payloads lie behind it.
    program = schema.Program(
        version=0,
        execution_plan=[plan],
        constant_buffer=[schema.Buffer(storage=b""), schema.Buffer(storage=bytes(16 + misaligned))],
        backend_delegate_data=[schema.BackendDelegateInlineData(data=payload) for payload in payloads],
        segments=[],
        constant_segment=schema.SubsegmentOffsets(segment_index=0, offsets=[]),
    )
    return bytes(
        _serialize_pte_binary(
            _PTEFile(program=program), extract_delegate_segments=True, segment_alignment=1 if misaligned else 128
        )
    )


def _planned(tensor: Tensor, offset: int) -> schema.Tensor:
    order = [0, 2, 3, 1] if is_channels_last(tensor) else list(range(tensor.dim()))
    return schema.Tensor(
        scalar_type=_SCALAR_TYPES[tensor.dtype],
        storage_offset=0,
        sizes=list(tensor.shape),
        dim_order=order,
        requires_grad=False,
        layout=0,
        data_buffer_idx=0,
        allocation_info=schema.AllocationDetails(memory_id=1, memory_offset_low=offset, memory_offset_high=0),
        shape_dynamism=schema.TensorShapeDynamism.STATIC,
    )


def compiled(model: Model, *, profiling: bool = False, target: str = "imxrt700") -> Compiled:
    """The three blocks that our converter makes of a LiteRT model."""
    result = convert(write_model(model), Options(target=target, use_profiling=profiling))
    graph = read_model(result.model).graphs[0]
    (op,) = graph.operators
    return blocks_of(graph, op, outputs=len(graph.outputs))


def payload_of(
    blocks: Compiled,
    input_formats: Sequence[int],
    output_formats: Sequence[int],
    *,
    input_map: Sequence[int] | None = None,
    output_map: Sequence[int] | None = None,
    profiling: bool = False,
    target: str = "imxrt700",
) -> bytes:
    """A payload of the blocks; without maps the arguments come in the order of the graph."""
    return build_payload(
        blocks.microcode,
        blocks.weights,
        blocks.kernels,
        input_formats,
        output_formats,
        range(len(input_formats)) if input_map is None else input_map,
        range(len(output_formats)) if output_map is None else output_map,
        len(input_formats),
        int(profiling),
        target,
        "open",
        __version__,
    )


def pool_model(*shapes: tuple[int, int, int, int]) -> Model:
    """One 2x2 max-pool of stride 1 per NHWC shape: exact, and wrong wherever channels and pixels are mixed up."""
    g = GraphBuilder()
    inputs, outputs = [], []
    for index, (batch, height, width, channels) in enumerate(shapes):
        window = {"filter_height": min(height, 2), "filter_width": min(width, 2), "stride_h": 1, "stride_w": 1}
        made = (batch, height - window["filter_height"] + 1, width - window["filter_width"] + 1, channels)
        inputs.append(g.tensor(f"x{index}", (batch, height, width, channels), DType.INT8, scale=0.5, zero_point=3))
        outputs.append(g.tensor(f"y{index}", made, DType.INT8, scale=0.5, zero_point=3))
        g.op("MAX_POOL_2D", inputs[-1:], outputs[-1:], padding=VALID, **window)
    return g.finish(inputs, outputs)


def pool(x: Tensor) -> Tensor:
    """What `pool_model` computes, on an NCHW tensor of any memory format, which the result has too."""
    window = (min(x.shape[2], 2), min(x.shape[3], 2))
    made = torch.nn.functional.max_pool2d(x.contiguous().float(), window, stride=1).to(torch.int8)
    return made.to(memory_format=torch.channels_last) if is_channels_last(x) else made


def random_int8(*shape: int, seed: int = 0) -> Tensor:
    """Every INT8 value is possible."""
    return torch.randint(-128, 128, shape, dtype=torch.int8, generator=torch.Generator().manual_seed(seed))
