"""`operators_not_to_delegate`: exact names or glob patterns, never substrings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from torch.fx import Node

from openneutron.executorch.fx import operator_name


class Excluded:
    """The operators and nodes that the user does not want delegated.

    An operator may be written "aten.add.Tensor", "aten::add.Tensor", "aten.add", "aten::add", "aten_add_tensor" or
    "aten_add"; a node by its name. "aten_add" names additions and nothing else. What an operator of the exported program
    was decomposed into goes by its name too: "aten.softplus" names all of a softplus.

    Example:
        >>> Excluded(["aten_add"]).names("aten.addmm.default")
        ''
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns = tuple(patterns)

    def pattern(self, node: Node) -> str:
        """The pattern that names this node, its operator or the one it was made from, "" when none does."""
        if not self.patterns:
            return ""
        origin = node.meta.get("original_aten")
        made_from = self.names(str(origin)) if origin is not None else ""
        return self._match({node.name}) or self.names(operator_name(node)) or made_from

    def unmatched_patterns(self, nodes: Iterable[Node]) -> tuple[str, ...]:
        """Return the patterns that match none of these nodes: they have no effect, and are probably misspelt."""
        seen = list(nodes) if self.patterns else []
        return tuple(one for one in self.patterns if not any(map(Excluded([one]).pattern, seen)))

    def names(self, operator: str) -> str:
        """The pattern that names this operator, "" when none does."""
        return self._match(spellings(operator)) if self.patterns else ""

    def may_name(self, operator: str) -> bool:
        """Whether some pattern names the operator or could name one of its nodes in the Edge graph."""
        stem = operator.replace(".", "_").lower()
        return any(pattern.startswith(stem) for pattern in self.patterns) or bool(self.names(operator))

    def _match(self, names: set[str]) -> str:
        return next((p for p in self.patterns for name in names if fnmatchcase(name, p)), "")


def spellings(operator: str) -> set[str]:
    """Every accepted way to write an operator's name."""
    namespace, _, rest = operator.partition(".")
    short = rest.partition(".")[0]
    names = {operator, f"{namespace}::{rest}", f"{namespace}.{short}", f"{namespace}::{short}"}
    return names | {f"{namespace}_{rest.replace('.', '_').lower()}", f"{namespace}_{short}"}
