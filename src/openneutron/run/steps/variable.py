"""Resource variables of a model that is cut into parts, and the operators on them that stay on the CPU."""

from __future__ import annotations

from dataclasses import dataclass

from openneutron.compiler.variables import ASSIGN, READ, Variables
from openneutron.errors import RuntimeFailure
from openneutron.litert.graph import Operator
from openneutron.run.steps import Array


class VariableStore:
    """The resource variables of a model that is cut into parts, which LiteRT would keep in one interpreter."""

    def __init__(self, variables: Variables) -> None:
        self._variables = variables
        self.held: dict[str, Array] = {}
        self.reset()

    def reset(self) -> None:
        """The contents that CALL_ONCE sets."""
        found = self._variables.by_name.values()
        self.held = {one.name: one.initial for one in found if one.initial is not None}

    def name(self, resource: int) -> str:
        """The variable behind a resource tensor."""
        return self._variables.of_tensor[resource]


@dataclass
class VariableStep:
    """One operator on a resource variable that stays on the CPU between NeutronGraphs."""

    op: Operator
    store: VariableStore
    source: str
    keeps_state: bool = True

    def run(self, values: dict[int, Array]) -> int:
        if self.op.code == READ:
            name = self.store.name(self.op.inputs[0])
            if name not in self.store.held:
                message = f"variable {name!r} is read before it is set"
                raise RuntimeFailure(message, where=self.source, hint="set it in CALL_ONCE's graph")
            values[self.op.outputs[0]] = self.store.held[name]
        elif self.op.code == ASSIGN:
            self.store.held[self.store.name(self.op.inputs[0])] = values[self.op.inputs[1]]
        return 0

    def reset(self) -> None:
        self.store.reset()
