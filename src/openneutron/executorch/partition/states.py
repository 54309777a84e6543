"""Find the buffers that `forward` changes and that a partition can keep, quantized, from call to call.

Before:  q = quantize(buffer); partition reads q and makes r; d = dequantize(r); buffer ← d       on the CPU, every call
After:   the partition owns the buffer and keeps r
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from torch.export import ExportedProgram
from torch.fx import Node

from openneutron.executorch.deliver.backend import states_of
from openneutron.executorch.fx import is_dequantize, is_quantize
from openneutron.executorch.lower.lowering import State


def kept_by(program: ExportedProgram, nodes: Collection[Node], results: Sequence[Node]) -> list[State]:
    """The buffers of a program whose every reader, and the writer, is among `nodes`; `results` are what it returns.

    Example:
        >>> [state.name for state in kept_by(program, partition, results)]
        ['past']
    """
    return [state for state in states_of(program) if _is_inside(state, nodes, results)]


def _is_inside(state: State, nodes: Collection[Node], results: Sequence[Node]) -> bool:
    read = [user for user in state.read.users if user.op != "output"]
    if not read or len(read) < len(state.read.users):
        return False
    if not all(is_quantize(user) and user.users and all(reader in nodes for reader in user.users) for user in read):
        return False
    written = state.written
    once = list(written.users) and all(user.op == "output" for user in written.users) and results.count(written) == 1
    return bool(once) and is_dequantize(written) and written.args[0] in nodes
