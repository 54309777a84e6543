"""Import executorch.exir faster.

Replaces: `ruamel.yaml.YAML.load`, during this one import, by PyYAML's reader in C: ruamel reads the types of all Edge
operators in Python. And a module of torch that brings Inductor along, see `leave_inductor_out.py`. Together they save
two thirds of the import (`python benchmarks/upstream.py --imports`).
Knows: ruamel.yaml 0.19.
Otherwise: an ordinary import.

Example:
    >>> load_exporter()  # before the first import of anything that imports executorch.exir
    >>> from openneutron.executorch.pipeline import compile_module
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module

from openneutron.executorch.upstream.switch import Expected, replaces


def load_exporter() -> None:
    """Import executorch.exir, unless that has happened."""
    import executorch  # noqa: F401  says that it is missing before anything it brings is

    if "executorch.exir" not in sys.modules:
        from openneutron.executorch.upstream.leave_inductor_out import leave_inductor_out

        with read_types_in_c(), leave_inductor_out():
            import_module("executorch.exir")


@replaces(
    "ruamel.yaml",
    Expected("ruamel.yaml", "YAML.load", ("self", "stream")),
    Expected("yaml", "CSafeLoader"),  # missing where PyYAML was built without libyaml
)
def read_types_in_c() -> Iterator[None]:
    """Let ruamel.yaml hand its input to PyYAML's C code."""
    yaml, reader = import_module("yaml"), import_module("ruamel.yaml").YAML
    before = reader.load
    reader.load = lambda self, stream: yaml.load(stream, yaml.CSafeLoader)
    try:
        yield
    finally:
        reader.load = before
