"""From an exported program to an Edge program with its delegates: straight where that is known, else ExecuTorch's way.

Example:
    >>> manager = delegate(quantized_program, NeutronPartitioner(generate_neutron_compile_spec("imxrt700")))
    >>> manager.to_executorch()
"""

from __future__ import annotations

from typing import Final

from executorch.exir import EdgeCompileConfig, EdgeProgramManager, to_edge_transform_and_lower
from executorch.exir.backend.partitioner import Partitioner
from executorch.exir.verification.verifier import EXIREdgeDialectVerifier
from torch.export import ExportedProgram

from openneutron.executorch.edge.direct import check, direct_edge
from openneutron.executorch.edge.draft import Unknown
from openneutron.executorch.edge.in_place import without_in_place
from openneutron.executorch.edge.sort_in_place import sort_in_place
from openneutron.executorch.edge.written_buffers import written_buffers
from openneutron.executorch.recompile_once import recompile_once
from openneutron.executorch.versions import check_executorch

_WRITTEN_FOR: Final = "1.5"  # the ExecuTorch whose decompositions and passes the rules tell


def delegate(program: ExportedProgram, partitioner: Partitioner) -> EdgeProgramManager:
    """As `to_edge_transform_and_lower(program, partitioner=[partitioner])`, in a fraction of the time for most networks."""
    try:
        return _straight(program, partitioner)
    except Unknown:
        return to_edge_transform_and_lower(program, partitioner=[partitioner])


def _straight(program: ExportedProgram, partitioner: Partitioner) -> EdgeProgramManager:
    """The steps of `to_edge_transform_and_lower`, which asks a partitioner the same in the same order."""
    if check_executorch() != _WRITTEN_FOR:
        raise Unknown("another version of ExecuTorch")
    program = without_in_place(written_buffers(program))
    check(program)
    program = partitioner.transform_for_pre_decomposition(program)
    whole, only_some = partitioner.ops_to_not_decompose(program)
    if only_some is not None:
        raise Unknown("an operator that is kept here and decomposed there")
    edge = direct_edge(program, whole)
    unchecked = EdgeCompileConfig(_check_ir_validity=False)  # what is delegated may be anything
    with recompile_once(), sort_in_place():  # else the whole graph is written out and copied for every partition
        manager = EdgeProgramManager({"forward": edge}, compile_config=unchecked).to_backend({"forward": partitioner})
    lowered = manager.exported_program()
    partitioner.ops_to_not_decompose(lowered)
    EXIREdgeDialectVerifier(edge_compile_config=EdgeCompileConfig(), class_only=True)()(lowered.graph_module)
    return manager
