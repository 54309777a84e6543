"""Find uses of private names of torch, torchao, ExecuTorch, ruamel and numpy outside the room that is for them.

    python scripts/private_names.py            lists them as file:line, and exits with 1 where there are any

Read from the syntax of each file, so a use through a variable counts as well:

- imports of a module or name with a leading underscore, also as text: "torch._ops"
- `value._name` on anything but the own object, where no class of the file has that attribute
- the same by getattr, hasattr, setattr, delattr or patch.object, and as a keyword: `EdgeCompileConfig(_check_ir_validity=...)`
- overriding a private method of a class that comes from one of these packages
- putting a module or a function in the place of another: sys.modules[...] = ..., unittest.mock
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src" / "openneutron"
ROOM = SOURCES / "executorch" / "upstream"
PACKAGES = frozenset({"torch", "torchao", "executorch", "ruamel", "numpy"})
_BY_NAME = frozenset({"getattr", "hasattr", "setattr", "delattr", "object"})  # object: patch.object
_OPERATORS = frozenset({"ops", "aten", "_QD"})  # operators' names are no private names of Python
# Annotations that torchao documents as fields of its public class.
_ALLOWED = frozenset({"_annotated", "_replace", "_asdict", "_fields"})
_ANY = re.compile(rf"\b({'|'.join(sorted(PACKAGES))})\b")
_TEXT = re.compile(rf"({'|'.join(sorted(PACKAGES))})(\.\w+)*\._[a-zA-Z]\w*(\.\w+)*")


def is_private(name: str) -> bool:
    """Whether a name has one leading underscore."""
    return name.startswith("_") and not name.startswith("__") and name.strip("_") != ""


def own_attributes(tree: ast.Module) -> set[str]:
    """Private attributes that the classes of a file define."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for one in ast.walk(node):
                if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    found.add(one.name)
                elif isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store) and _is_self(one.value):
                    found.add(one.attr)
                elif isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                    found.add(one.id)
    return {name for name in found if is_private(name)}


def uses(source: str) -> list[tuple[int, str]]:
    """Line and name of each use in a file.

    Example:
        >>> uses("import torch\\nprogram._update(module, signature)")
        [(2, '_update')]
    """
    if not _ANY.search(source):
        return []
    tree = ast.parse(source)
    found = {*_imports(tree), *_texts(tree), *_replaced(tree), *_overridden(tree)}
    if _foreign(tree):
        found |= {*_attributes(tree, own_attributes(tree))}
    return sorted(found)


def _foreign(tree: ast.Module) -> set[str]:
    """The names that a file imports from the packages."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.asname or alias.name for alias in node.names if alias.name.split(".")[0] in PACKAGES}
        elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] in PACKAGES:
            found |= {alias.asname or alias.name for alias in node.names}
    return found


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.split(".")[0] in PACKAGES and any(map(is_private, name.split("."))):
                yield node.lineno, name


def _texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _TEXT.fullmatch(node.value):
            yield node.lineno, node.value


def _attributes(tree: ast.Module, own: set[str]) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            name, lineno = node.attr, node.lineno
            if not is_private(name) or _is_self(node.value) or _is_operators(node.value):
                continue
        elif isinstance(node, ast.Call) and _called(node) in _BY_NAME and len(node.args) > 1:
            second = node.args[1]
            name, lineno = (second.value if isinstance(second, ast.Constant) else ""), node.lineno
        elif isinstance(node, ast.keyword):
            name, lineno = node.arg or "", node.value.lineno
        else:
            continue
        if isinstance(name, str) and is_private(name) and name not in own and name not in _ALLOWED:
            yield lineno, name


def _overridden(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Private methods of a class with a foreign base that nothing in the file calls: the base does."""
    foreign = _foreign(tree)
    called = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base).split(".")[0] in foreign for base in node.bases):
            for one in node.body:
                if isinstance(one, ast.FunctionDef) and is_private(one.name) and one.name not in called:
                    yield one.lineno, f"{node.name}.{one.name}"


def _replaced(tree: ast.Module) -> Iterator[tuple[int, str]]:
    if not _foreign(tree):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            # `sys.modules[spec.name] = module` is how a file is imported.
            if ast.unparse(node.value) == "sys.modules" and ast.unparse(node.slice) != "spec.name":
                yield node.lineno, "sys.modules"
        elif isinstance(node, ast.ImportFrom) and node.module == "unittest.mock":
            yield node.lineno, "unittest.mock"


def _called(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _is_operators(node: ast.expr) -> bool:
    return bool(_OPERATORS & set(re.split(r"\W+", ast.unparse(node))))


def main() -> int:
    """List the uses; 1 where there are any."""
    files = sorted(path for path in SOURCES.rglob("*.py") if ROOM not in path.parents)
    found = [(path.relative_to(ROOT), *use) for path in files for use in uses(path.read_text("utf-8"))]
    for path, line, name in found:
        print(f"{path}:{line}: {name} belongs into {ROOM.relative_to(ROOT)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
