"""Private names of torch that have no public equivalent, as functions and types with names of our own.

Everything else in this project imports them from here. One that is missing ends in a sentence that names the version of
torch, at import for the types and at the call for the functions.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, MutableMapping, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature
from torch.fx import GraphModule, Node

from openneutron.errors import OpenNeutronError
from openneutron.executorch.upstream.switch import TESTED


def missing_name_error(package: str, what: object) -> OpenNeutronError:
    """The error for a name that the installed version of a package does not have."""
    return OpenNeutronError(
        f"{package} {version(package)} does not have what OpenNeutron needs: {what}",
        hint=f"pip install '{package}=={TESTED[package]}.*'",
    )


try:
    from torch._decomp import get_decompositions
    from torch._export.verifier import SpecViolationError
    from torch._ops import OpOverload
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
    from torch.utils._python_dispatch import _disable_current_modes as without_modes
    from torch.utils._pytree import (
        TreeSpec,
        tree_flatten,
        tree_flatten_with_path,
        tree_leaves,
        tree_map,
        tree_unflatten,
    )
except ImportError as error:
    raise missing_name_error("torch", error) from error

__all__ = [
    "FakeTensor", "FakeTensorMode", "OpOverload", "SpecViolationError", "TreeSpec", "tree_flatten", "tree_flatten_with_path",
    "tree_leaves", "tree_map", "tree_unflatten", "without_modes",
]  # fmt: skip


def attribute(owner: Any, name: str, package: str = "torch") -> Any:
    """A private attribute that is known to be there; an `OpenNeutronError` where it is not."""
    try:
        return getattr(owner, name)
    except AttributeError as error:
        raise missing_name_error(package, error) from error


def schema_of(target: Any) -> Any:
    """The schema of an operator, None for a call of anything else."""
    return getattr(target, "_schema", None)


def overload_of(target: OpOverload) -> str:
    """The name of an overload: "Tensor" of `aten.add.Tensor`."""
    return str(attribute(target, "_overloadname"))


def aten_operator(target: Any) -> Any:
    """The ATen operator that an Edge operator wraps; anything else as it is."""
    return target if isinstance(target, OpOverload) else getattr(target, "_op", target)


def has_composite_kernel(target: OpOverload) -> bool:
    """Whether torch's C++ computes an operator by calling others, so that its result may show memory of its arguments."""
    has_kernel = attribute(torch._C, "_dispatch_has_kernel_for_dispatch_key")
    return bool(has_kernel(target.name(), "CompositeImplicitAutograd"))


def definition_of(target: OpOverload) -> Callable[..., Any] | None:
    """A function that computes an operator by simpler ones, None where torch has none."""
    found: Callable[..., Any] | None = get_decompositions([target]).get(target)
    if found is not None:
        return found
    implicit = attribute(torch._C, "DispatchKey").CompositeImplicitAutograd
    return target.decompose if target.has_kernel_for_dispatch_key(implicit) else None


def with_graph(program: ExportedProgram, module: GraphModule, signature: ExportGraphSignature) -> ExportedProgram:
    """The program with another graph; tensors and everything else are shared."""
    made: ExportedProgram = attribute(program, "_update")(module, signature)
    return made


def with_calls(program: ExportedProgram, calls: Sequence[Any]) -> ExportedProgram:
    """The program with another description of how it is called; the rest is shared."""
    attribute(program, "_module_call_graph")
    made = copy.copy(program)
    made._module_call_graph = list(calls)
    return made


def is_erased(node: Node) -> bool:
    """Whether a node was taken out of its graph."""
    return bool(attribute(node, "_erased"))


def buffers_of(module: torch.nn.Module) -> MutableMapping[str, torch.Tensor | None]:
    """A module's own buffers, to read and to replace, those without a tensor included."""
    found: MutableMapping[str, torch.Tensor | None] = attribute(module, "_buffers")
    return found


def forget_fake_calls() -> None:
    """Empty the cache that torch keeps of operators on fake tensors, for the whole process."""
    attribute(FakeTensorMode, "cache_clear")()


def load_quantized_operators() -> None:
    """Register `quantized_decomposed.*`: a module of torch does it, and torchao where torch no longer has the module."""
    for home in ("torch.ao.quantization.fx._decomposed", "torchao.quantization.pt2e.quantize_pt2e"):
        try:
            import_module(home)
        except ImportError:
            continue
        if hasattr(torch.ops.quantized_decomposed, "quantize_per_tensor"):
            return
    raise missing_name_error("torch", "the operators quantized_decomposed.*")
