"""Trials: quantize an exported float program with some choices, run it on samples, and measure it.

The program is captured once; a trial neither exports nor compiles.

Example:
    >>> trials = Trials(exported, batches, samples, wanted, judge)
    >>> trials.measure(Choices(correct_bias=True)).sqnr
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule
from torchao.quantization.pt2e.quantizer import Quantizer

from openneutron.executorch.capture.export import Inputs, one_thread
from openneutron.executorch.fx import operator_name
from openneutron.executorch.quality.goals import Measure
from openneutron.executorch.quantize.accuracy import SAMPLES, copy_tensors
from openneutron.executorch.quantize.choices import Choices
from openneutron.executorch.quantize.post_training import quantize_exported
from openneutron.executorch.quantize.quantizer import NeutronQuantizer
from openneutron.executorch.quantize.states import restore, states_of
from openneutron.memory import trim_heap

FEWEST_HELD: Final = 4  # held-out samples; fewer say little of others
HELD_SHARE: Final = 3  # one in so many samples is held out
_LARGE: Final = 1 << 26  # bytes of weights from which a collection is worth its time


@dataclass
class Trials:
    """A float program with its calibration data, and samples with the results of the original model on them.

    `judge` measures results of the quantized network; `quantizer` makes the quantizer of some choices.
    """

    exported: ExportedProgram
    calibration: Sequence[Inputs]
    samples: Sequence[Inputs]
    wanted: Sequence[Any]
    judge: Callable[[Sequence[Any]], Measure]
    quantizer: Callable[[Choices], Quantizer] = NeutronQuantizer.of
    held: int = 0  # so many of the first samples are not part of the calibration data
    module: GraphModule | None = field(default=None, init=False)  # of the latest trial

    def hold_out(self) -> Trials | None:
        """Return trials that are judged on samples which do not set ranges, round weights or correct biases.

        None where that leaves too few of either, or the samples are steps of one sequence.
        """
        held = min(len(self.samples), len(self.calibration) // HELD_SHARE)
        if held < FEWEST_HELD or len(self.samples) > SAMPLES:
            return None
        return replace(self, calibration=self.calibration[held:], held=held)

    def measure(self, choices: Choices) -> Measure:
        """Quantize with these choices and return what the network then reaches."""
        self._forget_last()
        self.module = self.quantize(choices)
        return self.judge_module(self.module)

    def judge_module(self, module: GraphModule) -> Measure:
        """Measure a quantized network; where samples are held out, the worse of these and of all counts."""
        found = run_all_samples(module, self.samples)
        measures = [self.judge(found), *([self.judge(found[: self.held])] if self.held else [])]
        return min(measures, key=lambda one: (one.accuracy, one.nearness, -one.loss))

    def quantize(self, choices: Choices) -> GraphModule:
        """Quantize with these choices."""
        return quantize_exported(self.exported, self.calibration, choices, self.quantizer(choices)).module

    def _forget_last(self) -> None:
        """Free the weights of the trial before: graphs are cycles, and Python counts objects, not bytes, until it collects."""
        self.module = None
        if sum(one.nbytes for one in self.exported.state_dict.values()) > _LARGE:
            gc.collect()
            trim_heap()

    def has(self, operator: str) -> bool:
        """Return whether the float program has an operator with this in its name."""
        return any(operator in operator_name(node) for node in self.exported.graph.nodes)


def run_all_samples(module: GraphModule, samples: Sequence[Inputs]) -> list[Any]:
    """Run a module on samples in a row, on one thread, and restore its state."""
    states = states_of(module)
    with torch.no_grad(), one_thread():
        found = [copy_tensors(module(*copy_tensors(sample))) for sample in samples]
    restore(module, states)
    return found
