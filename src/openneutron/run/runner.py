"""Run LiteRT models: NeutronGraphs in the simulator, all other operators in LiteRT's reference kernels.

A model without NeutronGraphs is the reference itself, but for the few operators of `reference_forms`.

Example:
    >>> runner = LiteRtRunner(Path("out.tflite").read_bytes(), source="out.tflite")
    >>> result = runner.run(random_inputs(runner.inputs, seed=0))
    >>> result.outputs["scores"], result.cycles
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from openneutron.litert.read import read_model
from openneutron.microcode.graph_op import is_graph_op
from openneutron.run.cut import steps_of
from openneutron.run.given import bind_inputs, random_inputs
from openneutron.run.golden_source import golden_source
from openneutron.run.steps.interpreter import InterpreterStep
from openneutron.run.steps.neutron import NeutronStep

__all__ = ["LiteRtRunner", "RunResult", "bind_inputs", "random_inputs", "runner_of"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class RunResult:
    """Outputs by name in the model's order, and the simulated cycles of all NeutronGraphs (0 when there are none)."""

    outputs: dict[str, Array]
    cycles: int


def runner_of(data: bytes, where: str) -> LiteRtRunner:
    """Create the runner of a LiteRT program."""
    return LiteRtRunner(data, source=where)


class LiteRtRunner:
    """A LiteRT model ready to run, converted or not.

    `inputs` and `outputs` are its tensors, in order; `source` is the name errors show.

    Example:
        >>> LiteRtRunner(data).run([image]).outputs
    """

    def __init__(self, data: bytes, *, source: str = "<bytes>") -> None:
        self.source = source
        model = read_model(data, source=source)
        graph = model.main
        self._graph = graph
        self.inputs = tuple(graph.tensors[i] for i in graph.inputs)
        self.outputs = tuple(graph.tensors[i] for i in graph.outputs)
        self._steps = steps_of(model, data, source)

    @property
    def neutron_graphs(self) -> int:
        """The number of NeutronGraphs in the model."""
        return sum(isinstance(step, NeutronStep) for step in self._steps)

    @property
    def notes(self) -> tuple[str, ...]:
        """One sentence with the reason for each operator type that LiteRT's reference kernel does not compute."""
        found = (golden_source(self._graph, op) for op in self._graph.operators if not is_graph_op(op))
        return tuple(dict.fromkeys(one.exception for one in found if one.why))

    def prepare(self) -> None:
        """Load every part that LiteRT runs; raises `NoReference` for a part that LiteRT refuses.

        Example:
            >>> LiteRtRunner(data).prepare()
        """
        for step in self._steps:
            if isinstance(step, InterpreterStep):
                step.prepare()

    def reset(self) -> None:
        """Set all state of the model back to its initial value.

        Example:
            >>> runner.reset()
        """
        for step in self._steps:
            step.reset()

    def __call__(self, *inputs: Any) -> tuple[Array, ...]:
        """Run once on arrays by position, or on one mapping by name, and return all outputs."""
        by_name = len(inputs) == 1 and isinstance(inputs[0], Mapping)
        return tuple(self.run(inputs[0] if by_name else inputs).outputs.values())

    @property
    def keeps_state(self) -> bool:
        """Whether a run depends on the runs before it."""
        return any(step.keeps_state for step in self._steps)

    def many(self, samples: Sequence[Sequence[Any]], *, threads: int) -> list[tuple[Array, ...]]:
        """Outputs of samples up to the first that has to be run alone; of all where the model is one NeutronGraph.

        Example:
            >>> runner.many([(image,), (another,)], threads=2)
        """
        ends = tuple(self._graph.inputs), tuple(self._graph.outputs)
        step = self._steps[0] if len(self._steps) == 1 else None
        if not isinstance(step, NeutronStep) or (step.reads, step.writes) != ends or step.keeps_state:
            return []
        return step.copies.run(samples, lambda some: step.block([self._bind(one) for one in some]), threads=threads)

    def _bind(self, sample: Sequence[Any]) -> list[Array]:
        by_name = len(sample) == 1 and isinstance(sample[0], Mapping)
        return bind_inputs(self.inputs, sample[0] if by_name else sample, source=self.source)

    def run(self, inputs: Sequence[Array] | Mapping[str, Array]) -> RunResult:
        """Run once; `inputs` by position or by tensor name, of exactly the model's types and shapes.

        What the model keeps from run to run (variables, recurrent state) is kept; `reset` forgets it.
        """
        given = bind_inputs(self.inputs, inputs, source=self.source)
        values = dict(zip(self._graph.inputs, given, strict=True))
        cycles = sum(step.run(values) for step in self._steps)
        outputs: dict[str, Array] = {}
        for position, index in enumerate(self._graph.outputs):
            tensor = self._graph.tensors[index]
            value = values[index] if tensor.data is None else tensor.data
            name = tensor.name or f"output_{position}"
            outputs[name if name not in outputs else f"{name}_{position}"] = value
        return RunResult(outputs, cycles)
