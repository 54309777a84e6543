"""`openneutron merge-kernels`: one kernel selection for several models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def merge_kernels(
    files: Annotated[list[Path], typer.Argument(help="Selections that `compile --dump-kernel-selection` wrote.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The C file to write.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Merge kernel selections, so that one firmware image runs several models.

    Selections of different converter versions or targets, edited files and duplicates are refused, and the output then
    stays as it was.

    Example: openneutron merge-kernels -o kernel_selection.c cifarnet_kernel_selection.c resnet8_kernel_selection.c
    """
    from openneutron.files import check_target
    from openneutron.microcode.selection import merge_files
    from openneutron.terminal import console

    check_target(output, ".c", inputs=files)
    merge_files(files, output)
    if as_json:
        import json

        console.put(json.dumps({"output": str(output), "merged": [str(file) for file in files]}, indent=2))
        return
    console.put(f"{output}: the kernels of {len(files)} selection{'' if len(files) == 1 else 's'}")
