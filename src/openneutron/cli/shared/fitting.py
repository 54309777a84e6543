"""What a model needs on each chip: the rows of `openneutron fits` and of the studio's page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from openneutron.analyze.fits import Limits, Row
    from openneutron.report.model import Report


def fit_rows(
    source: str,
    names: Sequence[str],
    limits: Limits,
    stage: Callable[[str], None],
    *,
    sizes: Sequence[str] = (),
    calibration: str = "",
    trust: bool = False,
    try_changes: bool = True,
) -> list[Row]:
    """Return the rows of a source for each chip; without `try_changes` nothing is compiled to see whether it helps.

    Example:
        >>> rows = fit_rows("cifarnet", ["imxrt700"], Limits(), print)
    """
    from dataclasses import replace

    from openneutron.analyze.fits import CpuPart, fits
    from openneutron.cli.inputs.loading import compile_source, found_source
    from openneutron.cli.shared.reporting import litert_models
    from openneutron.errors import UnsupportedError

    found = found_source(source, sizes, calibration, trust=trust)
    if found.kind == "tflite":
        models = [found.litert_model().model]
        return fits(models, names, limits, source=found.text, progress=stage, try_changes=try_changes)
    # Each chip has limits of its own, so a PyTorch program is cut anew for each.
    given: dict[str, Any] = {"sizes": sizes, "calibration": calibration, "trust": trust}
    rows: list[Row] = []
    for name in names:
        program, loaded = compile_source(source, stage, target=name, dump_intermediates=True, **given)
        if not program.report.totals.neutron_graphs:
            hint = "`openneutron compile` says why"
            raise UnsupportedError(f"nothing of it runs on the NPU of {name}", where=loaded.name, hint=hint)
        around = CpuPart(program.report.whole, name)
        models = litert_models(program, loaded)
        made = fits(models, [name], limits, around=around, source=loaded.name, progress=stage, try_changes=try_changes)
        rows += [replace(row, largest=by_module(row.largest, program.report)) for row in made]
    return rows


def by_module(text: str, report: Report) -> str:
    """A text with tensors of the compiler's under the names of the modules that make them.

    Example:
        >>> by_module("weights of aten_addmm_default (640 bytes)", report)
        'weights of classifier (640 bytes)'
    """
    import re

    modules = {kernel.name: kernel.module for kernel in report.kernels if kernel.module}
    return re.sub(r"\w+", lambda word: modules.get(word[0], word[0]), text)
