"""What a conversion can be asked for, whichever converter does it."""

from __future__ import annotations

from dataclasses import dataclass

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
