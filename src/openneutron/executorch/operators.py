"""The table of operators: how the quantizer annotates an ATen operator, and how an Edge operator is lowered.

Each file of `lower/ops` registers its own; files are found by name, so no list changes when one is added. Operators are
named as PyTorch prints them ("aten.conv2d.default"), so reading the table needs no torch.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from openneutron.verdict import Limit

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator

# What dominates an operator on the CPU: products, taps of a window, elements, table lookups, exponentials, or bytes moved.
CPU_CLASSES = ("conv", "matmul", "pool", "reduce", "interpolate", "exponential", "table", "element", "move", "free")

Annotate = Callable[["Node", "Annotator"], None]
Lower = Callable[["Call"], Any]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class LoweringRule:
    """How an Edge operator becomes LiteRT operators.

    `limits` are the constraints of the translation, in words users read; what the hardware cannot do is the kernels'
    knowledge. `shape_only` operators move stored values and keep their quantization. `preserve` says of which nodes
    ExecuTorch is asked not to decompose them, when they will be delegated. `table` says of which nodes a table of 256
    entries is better than what `lower` emits, or the only form (see `unary_table.py`). `tolerance` is the largest difference,
    in steps of the output, from the converted PT2E graph, `wide_tolerance` the same with 16-bit activations. `cpu` is its
    cost class where it stays on the CPU. Results of `stored` operators are integers, which leave a partition as they are;
    operators with `indices` read integers that the program computes or gets.
    """

    operator: str
    lower: Lower
    limits: tuple[Limit, ...]
    shape_only: bool
    activation: bool
    layout: str
    preserve: Callable[[Node], bool] | None
    table: Callable[[Node], bool] | None
    tolerance: int
    cpu: str
    stored: bool
    file: str
    wide_tolerance: int = 1
    indices: bool = False


@dataclass(frozen=True)
class AnnotationRule:
    """How the quantizer annotates an ATen operator; a `wide` one has a form with 16-bit activations."""

    operator: str
    annotate: Annotate
    file: str
    wide: bool = False


_LOWERINGS: dict[str, LoweringRule] = {}
_ANNOTATIONS: dict[str, AnnotationRule] = {}


def lowers(
    *operators: str,
    limits: tuple[Limit, ...] = (),
    shape_only: bool = False,
    activation: bool = False,
    layout: str = "any",
    preserve: bool | Callable[[Node], bool] = False,
    table: bool | Callable[[Node], bool] = False,
    tolerance: int = 1,
    cpu: str = "element",
    stored: bool = False,
    wide_tolerance: int = 1,
    indices: bool = False,
) -> Callable[[F], F]:
    """Register the decorated function as the lowering of these Edge operators.

    `layout` says which order of dimensions the operator computes in: "channels_last", "plain", or "any" of its inputs'.
    `cpu` is one of `CPU_CLASSES`, by which `place/cpu_model.py` prices it.
    """
    if layout not in ("any", "plain", "channels_last"):
        raise ValueError(f"layout {layout!r}")
    if cpu not in CPU_CLASSES:
        raise ValueError(f"cpu {cpu!r}")

    asks, tabled = (given if callable(given) else (_always if given else None) for given in (preserve, table))

    def wrap(function: F) -> F:
        for name in operators:
            _only_once(_LOWERINGS, name, function)
            _LOWERINGS[name] = LoweringRule(
                name,
                function,
                limits,
                shape_only,
                activation,
                layout,
                asks,
                tabled,
                tolerance,
                cpu,
                stored,
                function.__module__,
                wide_tolerance,
                indices,
            )
        return function

    return wrap


def annotates(*operators: str, wide: bool = False) -> Callable[[F], F]:
    """Register the decorated function as the annotation of these ATen operators.

    `wide`: LiteRT has the operators they become for INT16 too; others stay INT8 whatever is asked for.
    """

    def wrap(function: F) -> F:
        for name in operators:
            _only_once(_ANNOTATIONS, name, function)
            _ANNOTATIONS[name] = AnnotationRule(name, function, function.__module__, wide)
        return function

    return wrap


def _always(node: Node) -> bool:
    return True


def _only_once(table: dict[str, Any], name: str, function: Callable[..., Any]) -> None:
    if name in table and table[name].file != function.__module__:
        raise ValueError(f"{name} is registered by {table[name].file} and {function.__module__}")


@cache
def _load() -> None:
    # By name: what quantizes reads this table too, and comes before what lowers.
    files = import_module("openneutron.executorch.lower.ops")
    for module in pkgutil.iter_modules(files.__path__):
        if not module.name.startswith("_"):
            import_module(f"{files.__name__}.{module.name}")


@cache
def lowerings() -> dict[str, LoweringRule]:
    """Edge operator → rule, after importing every file of `lower/ops`.

    Example:
        >>> lowerings()["aten.convolution.default"].layout
        'channels_last'
    """
    _load()
    return dict(sorted(_LOWERINGS.items()))


@cache
def annotation_rules() -> dict[str, AnnotationRule]:
    """ATen operator → rule, after importing every file of `lower/ops`."""
    _load()
    return dict(sorted(_ANNOTATIONS.items()))
