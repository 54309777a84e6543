"""Compile a model in float for ExecuTorch's own kernels, without the NPU, to compare a delegated program with.

Example:
    >>> program = compile_float(model, (image,), name="net")
"""

from __future__ import annotations

import dataclasses

import torch

from openneutron.executorch.capture.export import Inputs, evaluation, export
from openneutron.executorch.compile_spec import spec_options
from openneutron.executorch.deliver.merge import merge_reports
from openneutron.executorch.program_lowering import lower_program
from openneutron.executorch.quantized_model import in_layout
from openneutron.executorch.run.runtime import runner_of
from openneutron.executorch.stage_times import Progress, Stages
from openneutron.executorch.torch_lock import torch_lock
from openneutron.executorch.upstream.versions import check_executorch
from openneutron.options import DEFAULT_TARGET
from openneutron.program import Program


@torch_lock()
def compile_float(
    model: torch.nn.Module,
    example_inputs: Inputs,
    *,
    target: str = DEFAULT_TARGET,
    channels_last: bool = False,
    name: str = "",
    progress: Progress | None = None,
) -> Program:
    """Compile without quantization; every node stays on the CPU, and the report says so for each."""
    check_executorch()
    stages = Stages(progress)
    spec = spec_options({"target": target})
    with evaluation(model), stages("exporting"):
        program = export(model, in_layout(example_inputs, channels_last))
    lowered = lower_program(program, spec, stages)
    report = merge_reports([], lowered.verdicts, target=target, converter=spec.converter, source=name)
    report = dataclasses.replace(report, seconds=dict(stages.seconds), files={"pte": len(lowered.pte)})
    return Program(lowered.pte, "pte", report, loader=runner_of)
