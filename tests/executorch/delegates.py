"""Programs for tests of the runtime: a payload in a `.pte` without quantizer, partitioner or backend in between."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from executorch.exir import to_edge
from executorch.exir.lowered_backend_module import LoweredBackendModule
from torch import Tensor

from openneutron import __version__
from openneutron.compiler.graph_op import Compiled, blocks_of
from openneutron.convert import Options, convert
from openneutron.executorch.payload import BACKEND_ID, build_payload
from openneutron.litert.build import GraphBuilder
from openneutron.litert.graph import DType, Model
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model

VALID = 1  # LiteRT's padding: windows stay inside the image


class _Shapes(torch.nn.Module):
    """Stands in for the delegated graph: only the shapes, types and memory formats of its outputs matter."""

    def __init__(self, outputs: Sequence[Tensor]) -> None:
        super().__init__()
        self.outputs = [(tuple(t.shape), t.dtype, t.dim() == 4 and is_channels_last(t)) for t in outputs]

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        made = []
        for shape, dtype, channels_last in self.outputs:
            tensor = torch.zeros(shape, dtype=dtype)
            made.append(tensor.to(memory_format=torch.channels_last) if channels_last else tensor)
        return tuple(made)


class _Caller(torch.nn.Module):
    """Calls its delegates one after the other: the outputs of one are the inputs of the next."""

    def __init__(self, delegates: Sequence[LoweredBackendModule]) -> None:
        super().__init__()
        self.count = len(delegates)
        for index, delegate in enumerate(delegates):
            setattr(self, f"delegate_{index}", delegate)

    def forward(self, *values: Tensor) -> tuple[Tensor, ...]:
        for index in range(self.count):
            values = tuple(getattr(self, f"delegate_{index}")(*values))
        return values


def is_channels_last(tensor: Tensor) -> bool:
    """Whether the memory order really is channels-last, which one-channel and one-pixel tensors leave open."""
    return tensor.is_contiguous(memory_format=torch.channels_last) and not tensor.is_contiguous()


def program_of(payloads: Sequence[bytes], inputs: Sequence[Tensor], outputs: Sequence[Sequence[Tensor]]) -> bytes:
    """A `.pte` that chains the payloads; `outputs` has examples of each one's outputs."""
    delegates = []
    feeds = tuple(inputs)
    for payload, made in zip(payloads, outputs, strict=True):
        edge = to_edge(torch.export.export(_Shapes(made), feeds)).exported_program()
        delegates.append(LoweredBackendModule(edge, BACKEND_ID, payload, []))
        feeds = tuple(made)
    exported = torch.export.export(_Caller(delegates), tuple(inputs))
    return to_edge(exported).to_executorch().buffer


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
