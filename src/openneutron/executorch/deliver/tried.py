"""Lowerings of partitions, each made once: what the partitioner lowered on trial is what the backend delivers.

ExecuTorch cuts a partition out as a program of its own before it asks the backend, and hands over no more than compile specs.
So a lowering is found by everything that decides it: nodes, values, options, and the data of constants. What differs in any
of these, or was lowered without its data, is lowered again. The order of nodes and outputs and the names of what enters decide
nothing: ExecuTorch sorts nodes anew, and an input that another partition makes gets a new name.
"""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from typing import Any

from torch.fx import Node
from torch.fx.node import map_arg

from openneutron.executorch.fx import debug_handles, label, operator_name, value_of
from openneutron.executorch.lower.encoding import Constants
from openneutron.executorch.lower.lowering import Lowered, Region
from openneutron.options import Options

_Names = dict[Node, str]


@dataclass(frozen=True)
class _Tried:
    """A lowering and what its nodes are called in its key."""

    lowered: Lowered
    names: _Names


_tried: dict[str, _Tried] = {}


def remember(region: Region, constants: Constants, options: Options, lowered: Lowered) -> None:
    """Keep a lowering for delivery, if the data of every constant was known when it was made."""
    names = _names(region)
    key = _key(region, names, constants, options)
    if key is not None:
        _tried[key] = _Tried(lowered, names)


def take(region: Region, constants: Constants, options: Options) -> Lowered | None:
    """The lowering that was made of the same region, told in the nodes of this one; None when there is none."""
    names = _names(region)
    key = _key(region, names, constants, options)
    found = None if key is None else _tried.pop(key, None)
    if found is None:
        return None
    here = {name: node for node, name in names.items()}
    made = found.lowered
    nodes, inputs, outputs = (
        [here[found.names[node]] for node in kind] for kind in (made.nodes, made.inputs, made.outputs)
    )
    return dataclasses.replace(made, nodes=nodes, inputs=inputs, outputs=outputs)


def forget() -> None:
    """Drop what no delivery asked for."""
    _tried.clear()


def _names(region: Region) -> _Names:
    """Nodes by name; what enters by its first reader."""
    inside = set(region.nodes)
    names = {node: node.name for node in (*region.nodes, *(state.read for state in region.states))}
    for node in region.inputs:
        readers = [(user.name, user.all_input_nodes.index(node)) for user in node.users if user in inside]
        names[node] = "input {1} of {0}".format(*min(readers)) if readers else node.name
    return names


def _key(region: Region, names: _Names, constants: Constants, options: Options) -> str | None:
    """A digest of all that lowering reads, None when the data of a constant is missing.

    Constants are known by what they hold, for each reader anew: ExecuTorch gives several readers of one a copy each.
    """
    nodes = sorted(region.nodes, key=names.__getitem__)
    inside = set(nodes)
    # The name of the source and the number of the partition change nothing.
    text: list[Any] = [dataclasses.replace(options, source="", partition=0)]
    text += [sorted(names[node] for node in ends) for ends in (region.inputs, region.outputs)]
    text += [(state.name, state.read.name, state.written.name) for state in region.states]
    for node, name in sorted(names.items(), key=lambda item: item[1]):
        text.append((name, sorted(user.name for user in node.users if user in inside), _shown(value_of(node))))
    contents = [constants.known_first_contents(state.read) for state in region.states]
    for node in nodes:
        fixed = [source for source in node.all_input_nodes if source in constants]
        own = {source: f"constant {at}" for at, source in enumerate(fixed)}
        given = map_arg((node.args, node.kwargs), lambda one, own=own: own.get(one) or names.get(one, one.name))  # type: ignore[misc]
        text.append(
            (operator_name(node), given, label(node), debug_handles(node), [*map(_shown, map(value_of, fixed))])
        )
        contents += [constants.known(source) for source in fixed]
    digest = hashlib.sha256(repr(text).encode())
    for data in contents:
        if data is None:
            return None
        digest.update(repr((data.dtype, data.shape)).encode())
        digest.update(data.data)
    return digest.hexdigest()


def _shown(value: Any) -> Any:
    """What a lowering sees of a node's tensors: sizes, type and the order of dimensions in memory."""
    if isinstance(value, (tuple, list)):
        return [_shown(one) for one in value]
    return (tuple(value.shape), value.dtype, value.stride()) if hasattr(value, "stride") else value
