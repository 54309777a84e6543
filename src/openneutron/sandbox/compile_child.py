"""Inside the sandbox: compile a file and write the program, its report and its dumps as result files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from openneutron.api import compile as compile_model
from openneutron.report.model import to_json
from openneutron.sandbox.supervisor import RESULTS
from openneutron.terminal.quiet import quiet


def serve(
    folder: Path, options: dict[str, Any], sizes: dict[str, Any], name: str, files: Sequence[str], source: str = ""
) -> None:
    """Compile `source`, or the model among `files` in the folder."""
    model: Any = Path(source) if source else (folder / files[-1]).read_bytes()
    calibration = _read_batches(folder / files[0]) if "calibration.npz" in files else None
    with quiet():
        program = compile_model(model, calibration=calibration, sizes=sizes or None, name=name, **options)
    results = folder / RESULTS
    for part in ("intermediates", "selections"):
        (results / part).mkdir()
    (results / "program").write_bytes(program.data)
    (results / "report.json").write_text(to_json(program.report), "utf-8")
    (results / "selection.c").write_text(program.kernel_selection, "utf-8")
    for at, text in enumerate(program.kernel_selections):
        (results / "selections" / f"{at:06}.c").write_text(text, "utf-8")
    for title, content in program.intermediates.items():
        (results / "intermediates" / title).write_bytes(content.encode() if isinstance(content, str) else content)


def _read_batches(file: Path) -> list[tuple[Any, ...]]:
    """Read the batches that `compile_in_sandbox` wrote; array `2_0` is the first input of the third batch."""
    import numpy as np

    found: dict[int, dict[int, Any]] = {}
    with np.load(file, allow_pickle=False) as arrays:
        for key in arrays.files:
            batch, position = map(int, key.split("_"))
            found.setdefault(batch, {})[position] = arrays[key]
    return [tuple(batch[at] for at in sorted(batch)) for _, batch in sorted(found.items())]
