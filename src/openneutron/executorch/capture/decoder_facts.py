"""What runners of language models ask a program about: constants, which the program gives as methods of its own.

A decoder takes tokens and the position of the first, and updates a cache of as many rows as its context has positions. The
names of the methods are those that ExecuTorch's runners look for.

Example:
    >>> decoder_constants(program)["get_max_seq_len"]
    256
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node

from openneutron.errors import OptionError
from openneutron.executorch.fx import operator_name, value_of

_UPDATES: Final = frozenset({"aten.index_put.default", "aten.index_put_.default"})
_COPIES: Final = frozenset({"aten.index_copy.default", "aten.index_copy_.default"})
_IN_PLACE: Final = frozenset({"aten.index_put_.default", "aten.index_copy_.default", "aten.copy_.default"})
_INTEGERS: Final = (torch.int32, torch.int64)


def decoder_constants(program: ExportedProgram) -> dict[str, Any]:
    """Return the constants of a decoder by the names of their methods; {} for another model."""
    inputs = [value_of(node) for node in _user_inputs(program)]
    if len(inputs) != 2 or any(one is None or one.dtype not in _INTEGERS for one in inputs):
        return {}
    contexts = [size for node in program.graph.nodes if (size := _rows(node))] if _keeps_state(program) else []
    vocabulary = _last_size(program)
    if not contexts or not vocabulary:
        return {}
    return {
        "get_max_seq_len": min(contexts), "get_max_context_len": min(contexts), "get_vocab_size": vocabulary,
        "use_kv_cache": True, "use_sdpa_with_kv_cache": False, "enable_dynamic_shape": False,
    }  # fmt: skip


def is_decoder(program: ExportedProgram) -> bool:
    """Return whether a program looks up tokens, its only inputs beside positions, and keeps a state of numbers."""
    inputs = _user_inputs(program)
    if not inputs or any(getattr(value_of(node), "dtype", None) not in _INTEGERS for node in inputs):
        return False
    looked_up = any(
        operator_name(node) == "aten.embedding.default" and node.args[1] in inputs for node in program.graph.nodes
    )
    return looked_up and _keeps_state(program)


def with_given(found: Mapping[str, Any], given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return found constants with those that a user gives; each must be a name and numbers or a truth value."""
    for name, value in (given or {}).items():
        if not isinstance(name, str) or not name.isidentifier() or name == "forward":
            raise OptionError(
                f"a constant method is called {name!r}", hint="give a Python name other than forward, e.g. get_bos_id"
            )
        several = isinstance(value, (list, tuple)) and bool(value)
        if not all(isinstance(one, (bool, int, float)) for one in (value if several else [value])):  # type: ignore[union-attr]
            raise OptionError(f"constant method {name} gives {value!r}", hint="give a number, or a list of numbers")
    return {**found, **{name: list(one) if isinstance(one, tuple) else one for name, one in (given or {}).items()}}


def _keeps_state(program: ExportedProgram) -> bool:
    """Return whether the program changes buffers: by its signature, or in place where it is not functional yet."""
    changed = bool(program.graph_signature.buffers_to_mutate)
    return changed or any(operator_name(node) in _IN_PLACE for node in program.graph.nodes)


def _user_inputs(program: ExportedProgram) -> Sequence[Node]:
    names = {spec.arg.name for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT}
    return [node for node in program.graph.nodes if node.op == "placeholder" and node.name in names]


def _rows(node: Node) -> int:
    """Return how many rows a tensor has that is updated at a position known only at run time, 0 for other operators."""
    name = operator_name(node)
    if name in _COPIES:
        whole, dim, index = node.args[:3]
    elif name in _UPDATES:
        whole, indices = node.args[:2]
        named = [(at, one) for at, one in enumerate(indices) if one is not None]  # type: ignore[arg-type]
        if len(named) != 1:
            return 0
        ((dim, index),) = named
    else:
        return 0
    if not isinstance(index, Node) or index.op == "get_attr" or not isinstance(whole, Node):
        return 0
    return int(value_of(whole).shape[dim])


def _last_size(program: ExportedProgram) -> int:
    """Return the last size of the only output."""
    names = [spec.arg.name for spec in program.graph_signature.output_specs if spec.kind is OutputKind.USER_OUTPUT]
    nodes = [node for node in program.graph.nodes if node.name in names]
    value = value_of(nodes[0]) if len(names) == len(nodes) == 1 else None
    return int(value.shape[-1]) if isinstance(value, torch.Tensor) and value.dim() else 0
