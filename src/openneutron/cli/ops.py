"""`openneutron ops`: the LiteRT operators that have kernels, with their limits, from the compiler's own rules."""

from __future__ import annotations

from typing import Annotated

import typer


def list_operators(
    names: Annotated[list[str] | None, typer.Argument(help="Only these operators, e.g. CONV_2D.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the LiteRT operators that run on the NPU; name some to see all their limits.

    Example: openneutron ops CONV_2D
    """
    import difflib
    import json

    from openneutron.compiler import kernels
    from openneutron.errors import OptionError
    from openneutron.terminal import console

    rules = kernels.rules()
    spelled = {_plain(name): name for name in rules}
    wanted = [spelled.get(_plain(name), name.upper()) for name in names or rules]
    for name in wanted:
        if name not in rules:
            near = [spelled[one] for one in difflib.get_close_matches(_plain(name), spelled, n=3)]
            about = f"did you mean {' or '.join(near)}? " if near else ""
            raise OptionError(
                f"operator {name} has no kernel", hint=f"{about}`openneutron ops` lists those that have one"
            )
    rows = [
        {
            "operator": name,
            "kernel": rules[name].kernel_file.rpartition(".")[2],
            "limits": [limit.rule for limit in rules[name].limits],
        }
        for name in wanted
    ]
    if as_json:
        console.put(json.dumps(rows, indent=2))
        return
    screen = console.stdout()
    if names:
        for row in rows:
            screen.print(f"[bold]{row['operator']}[/bold] runs in kernel {row['kernel']}; it must keep these limits:")
            for rule in row["limits"]:
                screen.print(f"  - {rule}", markup=False)
        return
    from rich.table import Table

    table = Table(header_style="cyan", box=None)
    for heading in ("operator", "kernel"):
        table.add_column(heading)
    table.add_column("limits", justify="right")
    for row in rows:
        table.add_row(str(row["operator"]), str(row["kernel"]), str(len(row["limits"])))
    screen.print(table)
    screen.print(f"{len(rows)} operators; `openneutron ops NAME` shows the limits of one.", markup=False)


def _plain(name: str) -> str:
    """An operator's name as people type it: conv2d, Conv-2D and CONV_2D are one."""
    return "".join(filter(str.isalnum, name.upper()))
