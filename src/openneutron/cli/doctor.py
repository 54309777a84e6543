"""`openneutron doctor`: what is installed, what is missing and how to get it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable


def diagnose(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Check the installation; exit code 1 when a needed part is missing.

    Example: openneutron doctor
    """
    import json
    import sys

    from openneutron._version import __version__
    from openneutron.cli import console
    from openneutron.cli.main import DIFFERS

    rows = [
        ("openneutron", True, __version__),
        ("python", sys.version_info >= (3, 11), sys.version.split()[0]),
        *(_package(name, wanted) for name, wanted in _NEEDED.items()),
        _native_library("driver and kernels", "library_path"),
        _native_library("ExecuTorch delegate", "delegate_path"),
        _sdk(),
    ]
    if as_json:
        console.put(json.dumps([{"part": part, "ok": ok, "found": found} for part, ok, found in rows], indent=2))
    else:
        from rich.table import Table

        table = Table(header_style="cyan", box=None)
        for heading in ("part", "", "found"):
            table.add_column(heading)
        for part, ok, found in rows:
            table.add_row(part, "ok" if ok else "MISSING" if ok is False else "optional", found)
        console.stdout().print(table, markup=False)
    if any(ok is False for _, ok, _ in rows):
        raise typer.Exit(DIFFERS)


# Package → the version prefix that is supported; "" for any.
_NEEDED = {"torch": "2.13.", "executorch": "1.5.", "torchao": "0.18.", "ai-edge-litert": "", "numpy": "", "ortools": ""}


def _package(name: str, prefix: str) -> tuple[str, bool | None, str]:
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version(name)
    except PackageNotFoundError:
        return name, False, f"not installed: pip install {name}{f'=={prefix}*' if prefix else ''}"
    if not found.startswith(prefix):
        return name, False, f"{found}; OpenNeutron needs {prefix}x: pip install '{name}=={prefix}*'"
    return name, True, found


def _native_library(part: str, finder: str) -> tuple[str, bool | None, str]:
    from openneutron import _native
    from openneutron.errors import OpenNeutronError

    find: Callable[[], object] = getattr(_native, finder)
    try:
        return part, True, str(find())
    except OpenNeutronError as error:
        return part, False, str(error)


def _sdk() -> tuple[str, bool | None, str]:
    """NXP's SDK is optional, so its absence is neither good nor bad."""
    from importlib.metadata import PackageNotFoundError, version
    from importlib.util import find_spec

    if find_spec("eiq_neutron_sdk") is None:
        return (
            "NXP's SDK",
            None,
            "not installed; only `--converter nxp` needs it: pip install eiq-neutron-sdk from NXP's index",
        )
    try:
        return "NXP's SDK", True, version("eiq_neutron_sdk")
    except PackageNotFoundError:
        return "NXP's SDK", True, "version unknown"
