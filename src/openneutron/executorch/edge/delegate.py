"""Convert an exported program to an Edge program with delegates: directly if all operators are known, else by ExecuTorch.

Example:
    >>> lowered = delegate(quantized_program, NeutronPartitioner(generate_neutron_compile_spec("imxrt700")))
    >>> lowered.manager.to_executorch()
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from executorch.exir import EdgeCompileConfig, EdgeProgramManager, to_edge_transform_and_lower
from executorch.exir.verification.verifier import EXIREdgeDialectVerifier
from torch.export import ExportedProgram

from openneutron.executorch.edge.direct import check, direct_edge
from openneutron.executorch.edge.draft import Unknown
from openneutron.executorch.edge.in_place import without_in_place
from openneutron.executorch.edge.written_buffers import written_buffers
from openneutron.executorch.upstream.edge_names import unchecked_config
from openneutron.executorch.upstream.recompile_once import recompile_once
from openneutron.executorch.upstream.sort_in_place import sort_in_place
from openneutron.executorch.upstream.switch import register

if TYPE_CHECKING:
    from openneutron.executorch.partition.partitioner import NeutronPartitioner

write_edge: Final = register("write_edge", "executorch")  # the rules are those of the ExecuTorch that is known


@dataclass(frozen=True)
class Delegated:
    """A lowered program; `retraced` names what made ExecuTorch retrace it, "" where its Edge graph was written directly."""

    manager: EdgeProgramManager
    retraced: str = ""


def delegate(
    program: ExportedProgram, partitioner: NeutronPartitioner, constants: Mapping[str, Any] | None = None
) -> Delegated:
    """Lower a program as `to_edge_transform_and_lower` does, faster for most networks; `constants` become methods."""
    try:
        return Delegated(_straight(program, partitioner, constants))
    except Unknown as unknown:
        return Delegated(retrace(program, partitioner, constants=constants), str(unknown))


def retrace(
    program: ExportedProgram,
    partitioner: NeutronPartitioner,
    config: EdgeCompileConfig | None = None,
    constants: Mapping[str, Any] | None = None,
) -> EdgeProgramManager:
    """Lower a program with ExecuTorch's own function; the result is verified unless `config` says otherwise."""
    # Verified below, when leftovers are decomposed.
    manager = to_edge_transform_and_lower(
        program,
        partitioner=[partitioner],
        compile_config=config or unchecked_config(),
        constant_methods=dict(constants or {}) or None,
    )
    partitioner.finish(manager.exported_program())
    if config is None:
        _verify(manager)
    return manager


def _straight(
    program: ExportedProgram, partitioner: NeutronPartitioner, constants: Mapping[str, Any] | None = None
) -> EdgeProgramManager:
    """Run the steps of `to_edge_transform_and_lower`, without its retraces."""
    if not write_edge.is_used():
        raise Unknown(write_edge.reason())
    program = without_in_place(written_buffers(program))
    check(program)
    program = partitioner.transform_for_pre_decomposition(program)
    whole, only_some = partitioner.ops_to_not_decompose(program)
    if only_some is not None:
        raise Unknown("an operator that is kept here and decomposed there")
    edge = direct_edge(program, whole)
    with recompile_once(), sort_in_place():  # otherwise the whole graph is printed and copied for every partition
        edges = EdgeProgramManager({"forward": edge}, dict(constants or {}) or None, compile_config=unchecked_config())
        manager = edges.to_backend({"forward": partitioner})
    partitioner.finish(manager.exported_program())
    _verify(manager)
    return manager


def _verify(manager: EdgeProgramManager) -> None:
    module = manager.exported_program().graph_module
    EXIREdgeDialectVerifier(edge_compile_config=EdgeCompileConfig(), class_only=True)()(module)
