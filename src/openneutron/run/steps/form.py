"""An operator whose reference kernel is not defined on all inputs: what is not comes from its form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openneutron.litert.graph import Graph, Operator
from openneutron.run.forms import Form
from openneutron.run.steps import Array
from openneutron.run.steps.interpreter import InterpreterStep


@dataclass
class FormStep:
    """One operator, its kernel and its form."""

    graph: Graph
    op: Operator
    form: Form
    kernel: InterpreterStep
    keeps_state: bool = False

    def run(self, values: dict[int, Array]) -> int:
        known = {at: self.graph.tensors[at].data for at in self.op.inputs if at >= 0}
        read = {at: values[at] if data is None else data for at, data in known.items()}
        undefined = self.form.undefined(self.graph, self.op, read)
        if not undefined.all():
            given = self.form.harmless(self.graph, self.op, read, undefined)
            self.kernel.run(given)
            values[self.op.outputs[0]] = given[self.op.outputs[0]]
        if undefined.any():
            ours = self.form.compute(self.graph, self.op, read)
            values[self.op.outputs[0]] = (
                ours if undefined.all() else np.where(undefined, ours, values[self.op.outputs[0]])
            )
        return 0

    def reset(self) -> None:
        """It keeps nothing."""
