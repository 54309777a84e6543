"""Private names of ExecuTorch that have no public equivalent, as functions with names of our own.

As `names.py` for torch; apart from it because the quantizer needs torch alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from executorch.exir import EdgeCompileConfig, EdgeProgramManager
from executorch.exir.backend.backend_details import PreprocessResult
from torch.export import ExportedProgram
from torch.fx import GraphModule

from openneutron.executorch.upstream.names import OpOverload, attribute, missing_name_error, overload_of, schema_of

try:
    from executorch.exir._serialize import _deserialize_pte_binary as read_program_file
    from executorch.exir._serialize._named_data_store import NamedDataStore
    from executorch.exir._serialize._program import serialize_pte_binary as write_program_file
    from executorch.exir.backend.utils import is_same_node
    from executorch.exir.delegate import executorch_call_delegate
    from executorch.exir.dialects._ops import ops
    from executorch.exir.lowered_backend_module import LoweredBackendModule
    from executorch.exir.program._program import _default_decomposition_table as edge_decompositions
except ImportError as error:
    raise missing_name_error("executorch", error) from error

__all__ = ["edge_decompositions", "read_program_file", "write_program_file"]

DELEGATE_INFO: Final = "_delegate_info_meta"  # key of what a backend leaves on a delegate


@cache
def edge_operator(target: OpOverload, overload: str = "") -> Any:
    """The Edge form of an ATen operator, or of another overload of it.

    Example:
        >>> edge_operator(torch.ops.aten.add.Tensor, "Scalar")
        <EdgeOpOverload: aten.add.Scalar>: schema = ...
    """
    space, name = schema_of(target).name.split("::")
    return getattr(getattr(getattr(ops.edge, space), name), overload or overload_of(target))


def unchecked_config() -> EdgeCompileConfig:
    """A configuration without verification of the Edge program."""
    try:
        return EdgeCompileConfig(_check_ir_validity=False)
    except TypeError as error:
        raise missing_name_error("executorch", error) from error


def preprocess_result(payload: bytes, handles: Mapping[str, Any], info: Any) -> PreprocessResult:
    """The answer of a backend: the payload, debug handles of its events, and what `info_of` gives back."""
    try:
        return PreprocessResult(processed_bytes=payload, debug_handle_map=handles, _delegate_info_meta=info)
    except TypeError as error:
        raise missing_name_error("executorch", error) from error


def info_of(delegate: Any) -> Any:
    """What the backend left on a delegate, None where it left nothing."""
    return (delegate.meta or {}).get(DELEGATE_INFO)


def replace_payload(delegate: Any, payload: bytes) -> None:
    """Give a delegate another payload."""
    attribute(delegate, "_processed_bytes", "executorch")
    delegate._processed_bytes = payload


def payload_of(delegate: Any) -> bytes | None:
    """The payload of a delegate, None for another submodule."""
    return delegate.processed_bytes if isinstance(delegate, LoweredBackendModule) else None


def delegates_of(module: GraphModule) -> list[Any]:
    """The delegates that a lowered module calls, in their order."""
    calls = (node for node in module.graph.nodes if node.target is executorch_call_delegate)
    return [getattr(module, node.args[0].target) for node in calls]


def share_data(delegate: Any, key: str, data: bytes, alignment: int) -> None:
    """Let a delegate's program hold data by name; delegates that hold the same data store it once."""
    store = NamedDataStore()
    store.add_named_data(key, data, alignment)
    attribute(delegate, "_named_data_store_output", "executorch")
    delegate._named_data_store_output = store.get_named_data_store_output()


def replace_program(manager: EdgeProgramManager, method: str, program: ExportedProgram) -> None:
    """Put a rewritten program into the manager; `EdgeProgramManager.transform` takes passes over modules only."""
    attribute(manager, "_edge_programs", "executorch")[method] = program


def add_constant_methods(manager: EdgeProgramManager, constants: Mapping[str, Any]) -> None:
    """Add methods that give constants to a program that is lowered already; the manager takes them only when it is made."""
    if constants:
        given = attribute(manager, "_config_methods", "executorch") or {}
        manager._config_methods = {**constants, **given}


def pipeline_of(session: Any) -> list[Any]:
    """The stages of an export session in order."""
    return [*attribute(session, "_pipeline_stages", "executorch")]


def replace_pipeline(session: Any, stages: list[Any]) -> None:
    """Give an export session another order of stages, those that it does not know before included."""
    session._pipeline_stages = stages


def forget_same_nodes() -> None:
    """Empty the cache in which ExecuTorch keeps nodes that it compared, and with them their graphs."""
    attribute(is_same_node, "cache_clear", "executorch")()
