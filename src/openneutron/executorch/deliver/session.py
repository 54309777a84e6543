"""A compile's session: what partitioning has lowered and converted on trial, for the backend to deliver.

The partitioner lowers and converts partitions to decide about them, and the backend needs the same results. ExecuTorch calls
the backend with nothing but the delegated subgraph and the list of its compile specs. So this list refers to the session
and to the partition's number. The reference is no part of any spec: a written program, pickled specs and other processes
do not have it, and the backend then lowers and converts the partition anew.

Example:
    >>> specs = CompileSession().add(0, Trial(Content.of(region, constants), options, lowered))
    >>> take_trial(specs).lowered is lowered
    True
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from executorch.exir.backend.compile_spec_schema import CompileSpec
from torch.fx import Node
from torch.fx.node import map_arg

from openneutron.compiler.plan.constants import KnownWeights
from openneutron.executorch.compile_spec import to_specs
from openneutron.executorch.fx import debug_handles, operator_name
from openneutron.executorch.lower.encoding import Constants
from openneutron.executorch.lower.layer_calls import LayerBodies
from openneutron.executorch.lower.lowering import Lowered, Region
from openneutron.options import Options
from openneutron.result import Result


@dataclass(frozen=True, eq=False)
class Content:
    """What must be the same for a lowering to be right: operators by name, and the data of constants by their readers.

    `names` are those that the program and the subgraph cut out of it agree on. `data` has None where it is not known.
    """

    names: dict[Node, str]
    operators: dict[str, tuple[str, tuple[int, ...]]]
    data: dict[tuple[str, int], npt.NDArray[Any] | None]

    @staticmethod
    def of(region: Region, constants: Constants) -> Content:
        """The content of a region as it is now: ExecuTorch takes the nodes of a partition apart."""
        inside = set(region.nodes)
        names = {node: node.name for node in (*region.nodes, *(state.read for state in region.states))}
        for node in region.inputs:
            # Another partition's result is renamed, so an input is named by its first reader.
            readers = [(user.name, _sources(user).index(node)) for user in node.users if user in inside]
            names[node] = "input {1} of {0}".format(*min(readers)) if readers else node.name
        data = {(state.read.name, -1): constants.known_first_contents(state.read) for state in region.states}
        for node in region.nodes:
            for position, source in enumerate(_sources(node)):
                if source in constants:
                    data[node.name, position] = constants.find(source)
        operators = {node.name: (operator_name(node), debug_handles(node)) for node in region.nodes}
        return Content(names, operators, data)

    def is_same(self, other: Content) -> bool:
        """Whether all of it is known and the same."""
        names, others = set(self.names.values()), set(other.names.values())
        if names != others or self.operators != other.operators or self.data.keys() != other.data.keys():
            return False
        return all(_is_same(self.data[key], other.data[key]) for key in self.data)


@dataclass(frozen=True, eq=False)
class Trial:
    """A partition as it was lowered on trial; `result` is its conversion as one graph, where one was needed to decide."""

    content: Content
    options: Options
    lowered: Lowered
    result: Result | None = None

    def in_nodes_of(self, region: Region, constants: Constants) -> Lowered | None:
        """The lowering with the nodes of the delegated subgraph; None if that has other content.

        While partitioning, ExecuTorch hands out programs without data, and the data is found by name. Several methods of a
        program may use one name for different data, so the data is compared. The order of nodes does not matter.
        """
        content, made = Content.of(region, constants), self.lowered
        if not self.content.is_same(content):
            return None
        node_of = {name: node for node, name in content.names.items()}
        nodes, inputs, outputs = (
            [node_of[self.content.names[node]] for node in kind] for kind in (made.nodes, made.inputs, made.outputs)
        )
        return dataclasses.replace(made, nodes=nodes, inputs=inputs, outputs=outputs)


@dataclass(eq=False)
class CompileSession:
    """Trials by partition number until they are delivered, and the bodies of the program's layer calls.

    Partitions are numbered from `first` on. `known_weights` are those of another method, which the partition shares.
    """

    first: int = 0
    known_weights: KnownWeights | None = None
    bodies: LayerBodies = field(default_factory=LayerBodies)
    _trials: dict[int, Trial] = field(default_factory=dict)

    def add(self, number: int, trial: Trial) -> PartitionSpecs:
        """Keep a trial for delivery; returns the compile specs of its partition."""
        self._trials[number] = trial
        return PartitionSpecs(to_specs(dataclasses.replace(trial.options, partition=number)), self, number)

    def take(self, number: int) -> Trial | None:
        """The trial of a partition, which the session keeps no longer."""
        return self._trials.pop(number, None)


class PartitionSpecs(list[CompileSpec]):
    """The compile specs of one partition, with the session that they come from; copies keep it, pickled ones do not."""

    def __init__(self, specs: Iterable[CompileSpec], session: CompileSession, number: int) -> None:
        super().__init__(specs)
        self.session, self.number = session, number

    def __deepcopy__(self, memo: Any) -> PartitionSpecs:
        return PartitionSpecs(copy.deepcopy([*self], memo), self.session, self.number)

    def __reduce__(self) -> tuple[Any, ...]:
        return list, ([*self],)


def take_trial(specs: Sequence[CompileSpec]) -> Trial | None:
    """The trial of the partition that the specs are for; None where it was delivered, or made in another process."""
    return specs.session.take(specs.number) if isinstance(specs, PartitionSpecs) else None


def known_weights_of(specs: Sequence[CompileSpec]) -> KnownWeights | None:
    """The weights that the partition shares with another method."""
    return specs.session.known_weights if isinstance(specs, PartitionSpecs) else None


def _sources(node: Node) -> list[Node]:
    """The nodes among a call's arguments, in the order of the arguments."""
    found: list[Node] = []
    map_arg((node.args, node.kwargs), found.append)
    return found


def _is_same(before: npt.NDArray[Any] | None, now: npt.NDArray[Any] | None) -> bool:
    if before is None or now is None or (before.dtype, before.shape) != (now.dtype, now.shape):
        return False
    return np.array_equal(before.reshape(-1).view(np.uint8), now.reshape(-1).view(np.uint8))
