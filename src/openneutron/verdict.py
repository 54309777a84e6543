"""Limits and verdicts: a limit is a predicate whose sentence is the rule that users read.

The partitioner's verdicts, the compiler's legalize stage, the report, `openneutron ops` and the generated
operator page all read the same predicates, so they cannot disagree.

Example:
    >>> @limit("dilation must be 1")
    ... def undilated(op, target):
    ...     return OK if op.dilation == 1 else no(f"dilation is {op.dilation}", hint="use strided pooling")
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple


class Reason(NamedTuple):
    """The reason of a rejection.

    `code` is stable and machine-readable (the predicate's name), `where` names the node or tensor, `message` carries
    the actual value, `hint` says what the user can change.
    """

    code: str
    message: str
    where: str = ""
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text} ({self.hint})" if self.hint else text


@dataclass(frozen=True)
class Verdict:
    """The result of a check; accepted when there is no reason."""

    reason: Reason | None = None

    def __bool__(self) -> bool:
        return self.reason is None


OK = Verdict()


def no(message: str, *, hint: str = "", code: str = "", where: str = "") -> Verdict:
    """Return a rejection whose message contains the actual value. `limit` fills in the code."""
    return Verdict(Reason(code=code, message=message, where=where, hint=hint))


Check = Callable[..., Verdict]


class Limit(NamedTuple):
    """A registered predicate: `rule` is the sentence shown in the documentation."""

    code: str
    rule: str
    check: Check

    def __call__(self, *args: Any) -> Verdict:
        verdict = self.check(*args)
        if verdict.reason is None or verdict.reason.code:
            return verdict
        reason = verdict.reason
        return Verdict(Reason(self.code, f"{reason.message}; {self.rule}", reason.where, reason.hint))


def limit(rule: str) -> Callable[[Check], Limit]:
    """Turn a predicate into a `Limit` whose code is the function's name and whose rule is `rule`."""

    def wrap(check: Check) -> Limit:
        return Limit(check.__name__, rule, check)

    return wrap


def first_reason(limits: tuple[Limit, ...], *args: Any) -> Verdict:
    """Check each limit in order and return the first rejection, else OK."""
    for one in limits:
        verdict = one(*args)
        if not verdict:
            return verdict
    return OK
