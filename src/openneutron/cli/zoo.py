"""`openneutron zoo`: the models that travel with the package."""

from __future__ import annotations

from typing import Annotated

import typer


def list_models(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the models that `openneutron compile NAME` knows.

    Example: openneutron zoo
    """
    import json

    from openneutron.terminal import console

    found = describe_models()
    if as_json:
        console.put(json.dumps([{"name": name, "description": text} for name, text in found.items()], indent=2))
        return
    from rich.table import Table

    table = Table(header_style="cyan", box=None)
    for heading in ("name", "description"):
        table.add_column(heading)
    for name, text in found.items():
        table.add_row(name, text)
    console.stdout().print(table)


def describe_models() -> dict[str, str]:
    """Name → first line of the model's file, read without importing it: loading a model would import torch."""
    import ast
    from importlib import resources

    from openneutron import zoo

    folder = resources.files(zoo)
    texts = {name: ast.get_docstring(ast.parse((folder / f"{name}.py").read_text("utf-8"))) for name in zoo.names()}
    return {name: (text or "").partition("\n")[0] for name, text in texts.items()}
