"""The seam: a pure function from LiteRT bytes and options to a result; `open` is our compiler, `nxp` is NXP's SDK.

Logs, kernel selection, report and dumps are return values; nothing here writes a file.

Example:
    >>> result = convert(Path("model.tflite").read_bytes(), Options(target="imxrt700"))
    >>> Path("out.tflite").write_bytes(result.model)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from openneutron.errors import OptionError

if TYPE_CHECKING:
    from openneutron.report.model import Report

CONVERTERS = ("open", "nxp")
OPTIMIZE = ("fast", "default", "max")


@dataclass(frozen=True)
class Options:
    """What a conversion can be asked for; the defaults are right for most.

    `passes_off` names L1 passes to leave out; `fit_bytes` is a budget for I/O + scratch + prefetch;
    `certificate` adds the proof of the schedules to the intermediates (certificate.json);
    `extra_flags` go verbatim to NXP's converter; `source` names the model in messages; `timeout_seconds` bounds NXP's
    converter, which runs in a subprocess.
    """

    target: str = "imxrt700"
    converter: str = "open"
    optimize: str = "default"
    fetch_constants_to_sram: bool = False
    use_profiling: bool = False
    dump_kernel_selection_code: bool = False
    passes_off: tuple[str, ...] = ()
    operators_not_to_delegate: tuple[str, ...] = ()
    fit_bytes: int | None = None
    minimum_operators_per_graph: int = 1
    dump_intermediates: bool = False
    certificate: bool = False
    extra_flags: tuple[str, ...] = ()
    source: str = "<model>"
    timeout_seconds: int = 600


@dataclass(frozen=True)
class Result:
    """A converted LiteRT model with everything that was learnt on the way.

    `kernel_selections` has one selection for each NeutronGraph, `kernel_selection_code` is the one for all of them.
    """

    model: bytes
    report: Report
    log: str = ""
    kernel_selection_code: str = ""
    kernel_selections: tuple[str, ...] = ()
    intermediates: dict[str, str] = field(default_factory=dict)


def convert(model: bytes, options: Options) -> Result:
    """Convert with the chosen converter; same input and options give the same bytes."""
    if options.converter == "open":
        from openneutron.compiler.pipeline import compile_model

        return compile_model(model, options)
    if options.converter == "nxp":
        from openneutron.vendor.nxp import convert_with_sdk

        return convert_with_sdk(model, options)
    raise OptionError(f"unknown converter {options.converter!r}", hint=f"known converters: {', '.join(CONVERTERS)}")
