"""What a model needs on each chip: the rows of `openneutron fits` and of the studio's page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openneutron.options import SDK_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from openneutron.analyze.fits import Change, CpuPart, Limits, Row
    from openneutron.executorch.capture.sources import Loaded
    from openneutron.program import Program
    from openneutron.report.model import Report

CLOSEST = 2  # changes to show where none is enough


def worth_telling(row: Row) -> list[Change]:
    """Return the changes that make it fit, the fastest first; where none does, the ones that come closest."""
    fitting = sorted((one for one in row.changes if one.fits), key=lambda one: one.need.milliseconds_high)
    if fitting:
        return fitting

    def lacks(one: Change) -> float:
        """How many times over its tightest limit it is."""
        pairs = (
            (one.need.sram_bytes, row.sram_limit),
            (one.need.flash_bytes, row.flash_limit),
            (one.need.milliseconds_high, row.milliseconds_limit),
        )
        return max((need / limit for need, limit in pairs if limit), default=0.0)

    return sorted((one for one in row.changes if one.need.sram_bytes), key=lacks)[:CLOSEST]


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
    sdk: str = SDK_VERSIONS[-1],
) -> list[Row]:
    """Return the rows of a source for each chip; without `try_changes` nothing is compiled to see whether it helps.

    Example:
        >>> rows = fit_rows("cifarnet", ["imxrt700"], Limits(), print)
    """
    from dataclasses import replace

    from openneutron.analyze.fits import fits
    from openneutron.cli.inputs.loading import found_source

    found = found_source(source, sizes, calibration, trust=trust)
    if found.kind == "tflite":
        models = [found.litert_model().model]
        return fits(models, names, limits, source=found.text, progress=stage, try_changes=try_changes, sdk=sdk)
    # Each chip has limits of its own, so a PyTorch program is cut anew for each.
    compiled = _Compiled(source, stage, {"sizes": sizes, "calibration": calibration, "trust": trust})
    rows: list[Row] = []
    for name in names:
        program, loaded = compiled.program(name)
        delegates, around = compiled(name)
        made = fits(
            delegates, [name], limits, around=around, asked=names, programs=compiled, source=loaded.name, progress=stage,
            try_changes=try_changes, sdk=sdk,
        )  # fmt: skip
        rows += [replace(row, largest=by_module(row.largest, program.report)) for row in made]
    return rows


class _Compiled:
    """A PyTorch program compiled for several chips and with several options, each once.

    The first compile quantizes, and looks for accuracy; the others partition and compile what it quantized.
    """

    def __init__(self, source: str, stage: Callable[[str], None], given: Mapping[str, Any]) -> None:
        self._source, self._stage, self._given = source, stage, given
        self._made: dict[tuple[Any, ...], tuple[Program, Loaded]] = {}

    def program(self, target: str, **options: Any) -> tuple[Program, Loaded]:
        """Return the program for a chip; an error where nothing of it runs on the NPU."""
        from openneutron.errors import UnsupportedError

        key = (target, *sorted(options.items()))
        if key not in self._made:
            self._made[key] = self._compile({"target": target, "dump_intermediates": True, **options})
        program, loaded = self._made[key]
        if not program.report.totals.neutron_graphs:
            hint = "`openneutron compile` says why"
            raise UnsupportedError(f"nothing of it runs on the NPU of {target}", where=loaded.name, hint=hint)
        return program, loaded

    def _compile(self, options: dict[str, Any]) -> tuple[Program, Loaded]:
        from openneutron.cli.inputs.loading import compile_source

        if self._made:
            from openneutron.executorch.analyze.program_what_ifs import compile_again

            first, loaded = next(iter(self._made.values()))
            again = compile_again(first, loaded, options, progress=self._stage)
            if again is not None:
                return again, loaded
        return compile_source(self._source, self._stage, **self._given, **options)

    def __call__(self, target: str, **options: Any) -> tuple[Sequence[bytes], CpuPart]:
        """Return the delegates' models and the CPU part around them."""
        from openneutron.analyze.fits import CpuPart
        from openneutron.cli.shared.reporting import litert_models

        program, loaded = self.program(target, **options)
        return litert_models(program, loaded), CpuPart(program.report.whole, target)


def by_module(text: str, report: Report) -> str:
    """A text with tensors of the compiler's under the names of the modules that make them.

    Example:
        >>> by_module("weights of aten_addmm_default (640 bytes)", report)
        'weights of classifier (640 bytes)'
    """
    import re

    modules = {kernel.name: kernel.module for kernel in report.kernels if kernel.module}
    return re.sub(r"\w+", lambda word: modules.get(word[0], word[0]), text)
