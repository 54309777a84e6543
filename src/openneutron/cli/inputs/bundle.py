"""The debug bundle of a program: the folder that `compile --intermediates` or `Program.save` wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openneutron.analyze.profile import Code
    from openneutron.report.model import Kernel


def codes_of(file: Path, data: bytes, bundle: Path) -> list[Code]:
    """Every microcode block of a compiled file, its layers named where the bundle knows them."""
    from openneutron.analyze.profile import Code
    from openneutron.cli.inputs.blocks import blocks_of_file
    from openneutron.errors import OptionError

    found = [
        Code(b.where, (b.microcode, b.weights, b.kernels), b.program(), _layers(bundle, number))
        for number, b in enumerate(blocks_of_file(data, str(file)))
    ]
    if not found:
        raise OptionError("nothing of it runs on the NPU", where=str(file), hint="`openneutron compile` says why")
    return found


def _layers(bundle: Path, number: int) -> tuple[Kernel, ...]:
    from openneutron.report.model import from_json

    file = bundle / f"partition_{number}_report.json"
    return from_json(file.read_text("utf-8"), where=str(file)).kernels if file.is_file() else ()
