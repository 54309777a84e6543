"""Compile specs: the options that travel from the partitioner through ExecuTorch into the backend.

Example:
    >>> spec = generate_neutron_compile_spec("imxrt700", use_profiling=True)
    >>> spec = NeutronCompileSpecBuilder().neutron_compile_spec("mcxn94x").build()
"""

from __future__ import annotations

import dataclasses
import json
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from openneutron.errors import OptionError
from openneutron.executorch.flags import apply_flags
from openneutron.litert.passes.run_passes import PASSES
from openneutron.machine import targets
from openneutron.options import SCHEMA, Options, check_options

if TYPE_CHECKING:
    from executorch.exir.backend.compile_spec_schema import CompileSpec

WHERE = "neutron compile spec"
KERNEL_SELECTION_DIR = "kernel_selection_dir"


# Options that travel to the backend, by their keys there.
KEYS = {one.key: one for one in SCHEMA.values() if one.key}


def spec_options(given: Mapping[str, Any]) -> Options:
    """Options for a compile spec, checked: also the target, and the flags that are given as text.

    Example:
        >>> spec_options({"target": "mcxn94x", "optimize": "fast"}).optimize
        'fast'
    """
    options = Options(**check_options(given, where=WHERE))
    if options.converter == "open":
        targets.load(options.target)
    with_flags(options)
    return options


def with_flags(options: Options) -> Options:
    """The options with the flags among them applied; NXP's converter gets its flags verbatim."""
    if options.converter == "nxp":
        return options
    return apply_flags(dataclasses.replace(options, extra_flags=()), options.extra_flags, where=f"{WHERE}, extra_flags")


def conversion_options(options: Options, source: str = "<partition>") -> Options:
    """The converter's options for one partition, without those that only the partitioner and the LiteRT passes read."""
    full = with_flags(options)
    return dataclasses.replace(
        full,
        operators_not_to_delegate=(),
        passes_off=tuple(name for name in full.passes_off if name not in PASSES),
        dump_intermediates=full.dump_intermediates or bool(full.intermediates_dir),
        source=source,
    )


def one_graph_options(options: Options, source: str = "<partition>") -> Options:
    """The converter's options for a partition that must become one NeutronGraph, views included."""
    given = conversion_options(options, source)
    return dataclasses.replace(given, one_graph=True) if given.converter == "open" else given


def generate_neutron_compile_spec(
    config: str,
    system_config: str | None = None,
    extra_flags: str | Sequence[str] | None = None,
    intermediates_dir: str | os.PathLike[str] | None = None,
    operators_not_to_delegate: str | Sequence[str] | None = None,
    use_neutron_for_format_conversion: bool = False,
    fetch_constants_to_sram: bool = False,
    dump_kernel_selection_code: bool = False,
    use_profiling: bool = False,
    **more: Any,
) -> list[CompileSpec]:
    """A compile spec for `NeutronPartitioner`; every wrong value is an `OptionError` that names the field.

    `config` is the target. `operators_not_to_delegate` are exact node or operator names, or glob patterns.
    With `use_neutron_for_format_conversion` the partition transposes inside, otherwise the delegate does on the CPU.
    `intermediates_dir` is an existing folder that receives the LiteRT model, dumps, disassembly and report of each
    partition; kernel selections are written there too, or else to the current folder. `more` are further options that
    travel to the backend, by the names of `openneutron.compile` (`converter`, `optimize`, `fit_bytes` …).
    `system_config` has no effect, as with upstream, whose scripts may give it; a warning says so.

    Example:
        >>> generate_neutron_compile_spec("imxrt700", operators_not_to_delegate=["aten.add.Tensor", "aten_mul*"])
    """
    if system_config is not None:
        warnings.warn(f"system_config={system_config!r} has no effect: config says all about the target", stacklevel=2)
    folder = os.fspath(intermediates_dir) if intermediates_dir is not None else ""
    if folder and not os.path.isdir(folder):
        raise OptionError(f"intermediates_dir {folder!r} is not a folder", where=WHERE, hint="make it first")
    if not isinstance(config, str):
        raise OptionError(f"config is {config!r}", where=WHERE, hint='give a target name such as "imxrt700"')
    return to_specs(
        spec_options(
            {
                "target": config,
                "extra_flags": extra_flags or (),
                "operators_not_to_delegate": operators_not_to_delegate or (),
                "use_neutron_for_format_conversion": use_neutron_for_format_conversion,
                "fetch_constants_to_sram": fetch_constants_to_sram,
                "dump_kernel_selection_code": dump_kernel_selection_code,
                "use_profiling": use_profiling,
                "intermediates_dir": folder,
                KERNEL_SELECTION_DIR: folder or "." if dump_kernel_selection_code else "",
                **more,
            }
        )
    )


class NeutronCompileSpecBuilder:
    """Builds a compile spec step by step, as scripts written for upstream do.

    Example:
        >>> spec = NeutronCompileSpecBuilder().neutron_compile_spec("imxrt700", use_profiling=True).build()
    """

    def __init__(self) -> None:
        self._specs: list[CompileSpec] = []

    def neutron_compile_spec(
        self,
        config: str,
        intermediates_dir: str | os.PathLike[str] | None = None,
        extra_flags: str | Sequence[str] | None = None,
        operators_not_to_delegate: str | Sequence[str] | None = None,
        *switches: bool,
        **options: Any,
    ) -> NeutronCompileSpecBuilder:
        """Take what `generate_neutron_compile_spec` takes, in upstream's order for its builder; returns the builder."""
        self._specs = generate_neutron_compile_spec(
            config, None, extra_flags, intermediates_dir, operators_not_to_delegate, *switches, **options
        )
        return self

    def build(self) -> list[CompileSpec]:
        """The finished compile spec."""
        if not self._specs:
            raise OptionError("no target was given", where=WHERE, hint='call neutron_compile_spec("imxrt700") before')
        return list(self._specs)


def to_specs(options: Options) -> list[CompileSpec]:
    """Options as ExecuTorch carries them: a key and JSON bytes for each field."""
    from executorch.exir.backend.compile_spec_schema import CompileSpec

    values = {key: getattr(options, one.name) for key, one in KEYS.items()}
    if not options.kernel_selection_dir:
        del values[KERNEL_SELECTION_DIR]
    return [CompileSpec(key, json.dumps(value).encode()) for key, value in values.items()]


def from_specs(specs: Iterable[CompileSpec]) -> Options:
    """The inverse of `to_specs`; unknown keys and missing ones are an `OptionError`."""
    values: dict[str, Any] = {}
    for spec in specs:
        if spec.key not in KEYS:
            raise OptionError(f"unknown key {spec.key!r}", where=WHERE, hint="use generate_neutron_compile_spec(...)")
        try:
            values[KEYS[spec.key].name] = json.loads(spec.value)
        except (ValueError, TypeError) as error:
            raise OptionError(f"the value of {spec.key!r} is no JSON: {spec.value!r}", where=WHERE) from error
    if "target" not in values:
        raise OptionError("there is no target", where=WHERE, hint="use generate_neutron_compile_spec(...)")
    return spec_options(values)
