"""Measurements of whole commands for `benchmarks/lowering.py`: reports per operator, and a detector on every target."""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

TARGET = "imxrt700"


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of those it has waited for."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def peak_mib() -> float:
    """Return this process's peak memory, including its imports."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _report(name: str, given: Any) -> Any:
    """Make a report as `openneutron report` does, with its page."""
    from openneutron.cli.inputs.loading import compile_loaded
    from openneutron.cli.shared.reporting import complete_report
    from openneutron.executorch.capture.sources import Loaded
    from openneutron.report.html import page

    def quiet(stage: str) -> None:
        pass

    loaded = Loaded(name, given.model, given.inputs, given.calibration)
    options = {"target": TARGET, "optimize": "default", "fit_bytes": None}
    program = compile_loaded(loaded, quiet, dump_intermediates=True, **options)
    report = complete_report(program, loaded, options, quiet)
    page(report)
    return report


def measure_report(name: str) -> dict[str, float]:
    """Return the CPU seconds of a report, after a tiny one, and its number of operators."""
    import torch

    from benchmarks import modules

    torch.set_num_threads(1)
    _report("tiny", modules.tiny())
    given = modules.load(name)
    began = cpu_seconds()
    report = _report(name, given)
    return {"seconds": cpu_seconds() - began, "operators": report.totals.operators_total}


def measure_compile(name: str, target: str) -> dict[str, float]:
    """Return the CPU seconds of a compile, after a tiny one and from the process's start, and the process's memory."""
    import torch

    import openneutron
    from benchmarks import modules

    torch.set_num_threads(1)
    tiny = modules.tiny()
    openneutron.compile(tiny.model, tiny.inputs, calibration=tiny.calibration)
    given = modules.load(name)
    began, before = cpu_seconds(), peak_mib()
    openneutron.compile(given.model, given.inputs, calibration=given.calibration, target=target)
    end = cpu_seconds()
    return {"seconds": end - began, "whole": end, "mib": peak_mib(), "mib before": before}
