"""What fewer output channels would save, for convolutions whose channels do not fill the array.

The array computes M output channels at a time, so 10 channels cost as much as 16. The estimate prices the same calls with
channels cut to a whole number of passes, by the cost model of the compiler and the simulator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from openneutron.compiler import kernels
from openneutron.compiler.back.predict import stored_weights
from openneutron.compiler.pipeline import compile_model
from openneutron.litert.read import read_model
from openneutron.machine import targets
from openneutron.machine.pricing import call_cycles
from openneutron.machine.targets import Target
from openneutron.microcode import abi
from openneutron.microcode.decode import decode
from openneutron.microcode.encode import encode_call
from openneutron.microcode.graph_op import blocks_of, is_graph_op
from openneutron.microcode.instructions import Call, Program
from openneutron.microcode.storage.sections import Sizes
from openneutron.microcode.walk import executed_calls
from openneutron.options import Options
from openneutron.report.model import Kernel, Report, WhatIf

# Only convolutions: their channels are the designer's choice, while a linear layer's are usually the classes.
_KERNELS = ("conv2d", "depthwise_conv2d", "transpose_conv2d")


def channel_what_ifs(models: Sequence[bytes], options: Options, report: Report) -> Iterator[WhatIf]:
    """Yield one what-if per convolution with a partly filled pass; the rest of the program is unchanged."""
    target = targets.load(options.target)
    step = target.units * target.cores
    graph = 0
    for model in models:
        for program in _programs(compile_model(model, options).model):
            for kernel in report.kernels:
                if kernel.graph == graph and kernel.kernel in _KERNELS and kernel.output_shape[-1] > step:
                    yield from _what_if(kernel, program, target, step, report)
            graph += 1


def _what_if(kernel: Kernel, program: Program, target: Target, step: int, report: Report) -> Iterator[WhatIf]:
    channels = kernel.output_shape[-1]
    fewer, filled = channels // step * step, -(-channels // step) * step
    if fewer == channels:
        return
    sizes = Sizes(program.sections)
    calls = [(call, first, last) for call, first, last in executed_calls(program) if call.tag == kernel.node]
    saved = kernel.cycles - sum(
        _cycles(_cut_channels(call, channels, fewer, step), first, last, target, sizes) for call, first, last in calls
    )
    if saved > 0:
        cycles = report.totals.cycles - saved
        change = (
            f"Give {kernel.name} {fewer} output channels instead of {channels}: the array makes {step} at a time, "
            f"so {channels} cost as much as {filled}"
        )
        totals, milliseconds = report.totals, target.milliseconds(cycles)
        share = milliseconds / totals.milliseconds if totals.milliseconds else 0.0
        yield WhatIf(
            change, "", target.name, cycles, milliseconds, totals.peak_bytes, "priced",
            milliseconds_low=totals.milliseconds_low * share, milliseconds_high=totals.milliseconds_high * share,
        )  # fmt: skip


def _cut_channels(call: Call, channels: int, fewer: int, step: int) -> Call:
    """Return the call with fewer output channels, and fewer weight groups."""
    roles = [role.removesuffix("?") for role in abi.by_id(call.kernel).operands]
    operands = list(call.operands)
    output = operands[roles.index("output")]
    now = output.channels * fewer // channels  # pixels may be merged into wider ones
    operands[roles.index("output")] = output._replace(channels=now)
    if "weights" in roles:
        weights = operands[roles.index("weights")]
        size = weights.channels * -(-now // step) // -(-output.channels // step)
        operands[roles.index("weights")] = weights._replace(channels=size)
    return replace(call, operands=tuple(operands))


def _cycles(call: Call, first: int, last: int, target: Target, sizes: Sizes) -> int:
    return call_cycles(target.name, encode_call(call), first, last, stored_weights(call, sizes))


def _programs(model: bytes) -> Iterator[Program]:
    kernels.rules()  # importing their files declares the kernels' parameters
    graph = read_model(model).main
    for op in graph.operators:
        if is_graph_op(op):
            blocks = blocks_of(graph, op, outputs=len(op.outputs))
            yield decode(blocks.microcode, blocks.weights, blocks.kernels)
