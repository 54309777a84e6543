"""The command `openneutron`: one file per subcommand, each importing what it needs when it runs."""

from __future__ import annotations

from openneutron.cli.main import main

__all__ = ["main"]
