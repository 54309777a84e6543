"""`openneutron ops`: the operators that run on the NPU, with their limits, from the compiler's own rules."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated

import typer


@dataclass(frozen=True)
class _Operator:
    """An operator and its limits; the kernel of a PyTorch operator is that of the LiteRT operators it becomes."""

    operator: str
    kernel: str
    limits: list[str]


def list_operators(
    names: Annotated[
        list[str] | None, typer.Argument(help="Only these, LiteRT's or PyTorch's, e.g. CONV_2D or nn.Linear.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the LiteRT operators that run on the NPU; name some, or PyTorch's, to see all their limits.

    Example: openneutron ops CONV_2D
    """
    import json

    from openneutron.terminal import console

    litert = _litert()
    rows = [one for name in names for one in _find_by_name(name, litert)] if names else list(litert.values())
    if as_json:
        console.put(json.dumps([asdict(row) for row in rows], indent=2))
        return
    screen = console.stdout()
    if names:
        for row in rows:
            runs = f"runs in kernel {row.kernel}" if row.kernel else "is translated to LiteRT's operators"
            must = "it must keep these limits:" if row.limits else "the translation has no limits of its own"
            screen.print(f"[bold]{row.operator}[/bold] {runs}; {must}")
            for rule in row.limits:
                screen.print(f"  - {rule}", markup=False)
        return
    from rich.table import Table

    table = Table(header_style="cyan", box=None)
    for heading in ("operator", "kernel"):
        table.add_column(heading)
    table.add_column("limits", justify="right")
    for row in rows:
        table.add_row(row.operator, row.kernel, str(len(row.limits)))
    screen.print(table)
    screen.print(
        f"{len(rows)} operators; `openneutron ops NAME` shows the limits of one, also PyTorch's.", markup=False
    )


def _litert() -> dict[str, _Operator]:
    """LiteRT's operators by their plain names."""
    from openneutron.compiler import kernels

    return {
        _plain(name): _Operator(name, rule.kernel_file.rpartition(".")[2], [limit.rule for limit in rule.limits])
        for name, rule in kernels.rules().items()
    }


def _list_straightened() -> dict[str, _Operator]:
    """Loops and branches, which become the operators of their graphs."""
    from openneutron.compiler.front.unroll_control_flow import CONTROL_FLOW_LIMITS

    return {_plain(name): _Operator(name, "", list(limits)) for name, limits in CONTROL_FLOW_LIMITS.items()}


def _find_by_name(name: str, litert: dict[str, _Operator]) -> list[_Operator]:
    """The operators a name means: LiteRT's, else PyTorch's where that is installed."""
    import difflib

    from openneutron.errors import OptionError
    from openneutron.terminal import console

    litert = litert | _list_straightened()
    if (plain := _plain(name)) in litert:
        return [litert[plain]]
    with console.progress("looking among PyTorch's operators"):
        found = _torch(name)
    if found:
        return found
    from openneutron.compiler.ways_out import WAYS_OUT

    for code, (why, hint) in WAYS_OUT.items():
        if plain == _plain(code.removeprefix("CUSTOM:")):
            raise OptionError(f"operator {name.upper()} has no kernel: {why}", hint=hint)
    if unlowered := _no_lowering(name):
        raise OptionError(unlowered[0], hint=unlowered[1])
    near = [one for key, one in litert.items() if len(plain) >= 3 and plain in key]
    near = near or [litert[key] for key in difflib.get_close_matches(plain, litert, n=3)]
    about = f"did you mean {' or '.join(one.operator for one in near[:3])}? " if near else ""
    raise OptionError(
        f"operator {name.upper()} has no kernel", hint=f"{about}`openneutron ops` lists those that have one"
    )


def _torch(name: str) -> list[_Operator]:
    """Edge operators of that name (linear, nn.Linear, aten.linear.default); none where ExecuTorch is not installed."""
    from openneutron.terminal.quiet import quiet

    try:
        with quiet():
            from openneutron.executorch.operators import lowerings
    except ImportError:
        return []
    parts = [_plain(part) for part in name.split(".")]
    return [
        _Operator(edge, "", [limit.rule for limit in rule.limits])
        for edge, rule in lowerings().items()
        if _plain(edge.split(".")[1]) in parts
    ]


def _no_lowering(name: str) -> tuple[str, str] | None:
    """Why the NPU does not take a PyTorch operator (aten.topk), and what to do; None where nothing is known."""
    try:
        from openneutron.executorch import ways_out
    except ImportError:
        return None
    return ways_out.no_lowering(name) if ways_out.way_out(name).hint else None


def _plain(name: str) -> str:
    """An operator's name as people type it: conv2d, Conv-2D and CONV_2D are one."""
    return "".join(filter(str.isalnum, name.upper()))
