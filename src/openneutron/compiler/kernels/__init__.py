"""Kernels: one file each. A file registers its ABI, and the limits and legalization of each LiteRT operator that it serves.

Adding a kernel adds `compiler/kernels/k.py`, `runtime/firmware/kernels/k.c` and `tests/compiler/kernels/test_k.py`; see
docs/contributing.md. `make generate` writes `kernel_files.py`, the file of each operator, so that a compile imports only the
files of its model's operators. An operator that is missing there is looked for in all files.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from openneutron.compiler.kernel_files import KERNEL_FILES
from openneutron.compiler.operand_checks import check_operands
from openneutron.compiler.signature import OpSignature
from openneutron.compiler.ways_out import WAYS_OUT
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, by_name
from openneutron.verdict import Limit, Reason, Verdict, first_reason

if TYPE_CHECKING:
    from openneutron.compiler.legalizer import Legalizer


class Rule(NamedTuple):
    """How one LiteRT operator becomes kernels: the limits users read, and the function that emits L1 nodes."""

    code: str
    limits: tuple[Limit, ...]
    legalize: Callable[[Legalizer], None]
    kernel_file: str


_RULES: dict[str, Rule] = {}


def serves(
    *codes: str, limits: tuple[Limit, ...]
) -> Callable[[Callable[[Legalizer], None]], Callable[[Legalizer], None]]:
    """Register the decorated function as the legalization of these LiteRT operators."""

    def wrap(function: Callable[[Legalizer], None]) -> Callable[[Legalizer], None]:
        for code in codes:
            if code in _RULES and _RULES[code].kernel_file != function.__module__:
                raise ValueError(f"{code} is served by {_RULES[code].kernel_file} and {function.__module__}")
            _RULES[code] = Rule(code, limits, function, function.__module__)
        return function

    return wrap


@cache
def rules() -> dict[str, Rule]:
    """Return LiteRT operator → rule, after importing every file of this folder."""
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    return dict(sorted(_RULES.items()))


def rule_of(code: str) -> Rule | None:
    """Return the rule of a LiteRT operator, after importing its file; None where no kernel serves it."""
    if code not in _RULES and code in KERNEL_FILES:
        import_module(f"{__name__}.{KERNEL_FILES[code]}")
    elif code not in _RULES:
        rules()  # a kernel may be newer than the list
    return _RULES.get(code)


def abi_of(name: str) -> KernelAbi:
    """Return the calling convention of a kernel; its file is imported when an operator that it serves is legalized.

    Example:
        >>> abi_of("conv2d").operands[-1]
        'output'
    """
    found = by_name(name)
    if found is None:
        rules()
        found = by_name(name)
    assert found is not None, f"there is no kernel {name}"
    return found


def _no_kernel(code: str, where: str) -> Reason:
    name = code.removeprefix("CUSTOM:")
    kind = "custom operator" if code.startswith("CUSTOM:") else "operator"
    why, hint = WAYS_OUT.get(code, ("", "it runs on the CPU; see `openneutron ops`"))
    return Reason("no_kernel", f"{kind} {name} has no kernel{f': {why}' if why else ''}", where, hint)


def check(signature: OpSignature, target: Target, *, streams: bool = False) -> Verdict:
    """Return whether the operator can run on the target. Partitioner and compiler both use this function.

    With `streams` a tensor may exceed the memory, for a caller that then checks whether it can be streamed.

    Example:
        >>> check(of_operator(graph, graph.operators[0]), targets.load("imxrt700")).reason
    """
    where = signature.outputs[0].name if signature.outputs else ""
    rule = rule_of(signature.code)
    if rule is None:
        return Verdict(_no_kernel(signature.code, where))
    reason = check_operands(signature, target, streams=streams)
    if reason is not None:
        return Verdict(reason)
    verdict = first_reason(rule.limits, signature, target)
    if verdict.reason is not None and not verdict.reason.where:
        r = verdict.reason
        return Verdict(Reason(r.code, r.message, where, r.hint))
    return verdict
