"""Run an operator with its reference kernel, and with its override for the elements that the kernel leaves undefined."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openneutron.litert.graph import Graph, Operator
from openneutron.run.reference_overrides import Override
from openneutron.run.steps import Array
from openneutron.run.steps.interpreter import InterpreterStep


@dataclass
class OverrideStep:
    """One operator with its reference kernel and its override."""

    graph: Graph
    op: Operator
    override: Override
    kernel: InterpreterStep
    keeps_state: bool = False

    def run(self, values: dict[int, Array]) -> int:
        known = {at: self.graph.tensors[at].data for at in self.op.inputs if at >= 0}
        read = {at: values[at] if data is None else data for at, data in known.items()}
        undefined = self.override.undefined(self.graph, self.op, read)
        if not undefined.all():
            given = self.override.harmless(self.graph, self.op, read, undefined)
            self.kernel.run(given)
            values[self.op.outputs[0]] = given[self.op.outputs[0]]
        if undefined.any():
            ours = self.override.compute(self.graph, self.op, read)
            values[self.op.outputs[0]] = (
                ours if undefined.all() else np.where(undefined, ours, values[self.op.outputs[0]])
            )
        return 0

    def reset(self) -> None:
        """It keeps nothing."""
