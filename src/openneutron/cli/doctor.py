"""`openneutron doctor`: what is installed, what is missing and how to get it."""

from __future__ import annotations

from typing import Annotated

import typer

from openneutron.cli.shared.diagnosis import print_diagnosis


def diagnose(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Check the installation; exit code 1 when a needed part is missing.

    Example: openneutron doctor
    """
    from openneutron.cli.main import DIFFERS

    if not print_diagnosis(as_json):
        raise typer.Exit(DIFFERS)
