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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openneutron.errors import OptionError
from openneutron.executorch.flags import apply_flags
from openneutron.machine import targets
from openneutron.options import CONVERTERS, OPTIMIZE, Options

if TYPE_CHECKING:
    from executorch.exir.backend.compile_spec_schema import CompileSpec

WHERE = "neutron compile spec"


@dataclass(frozen=True)
class NeutronOptions:
    """The content of a compile spec, checked.

    `extra_flags` are options of `openneutron compile` for the open converter (an unknown one is an error) and go verbatim
    to NXP's. `partition` is the partition's number, filled in by the partitioner.
    """

    config: str
    extra_flags: tuple[str, ...] = ()
    operators_not_to_delegate: tuple[str, ...] = ()
    use_neutron_for_format_conversion: bool = False
    fetch_constants_to_sram: bool = False
    dump_kernel_selection_code: bool = False
    use_profiling: bool = False
    intermediates_dir: str = ""
    converter: str = "open"
    optimize: str = "default"
    passes_off: tuple[str, ...] = ()
    fit_bytes: int | None = None
    dump_intermediates: bool = False
    partition: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.config, str):
            raise OptionError(f"config is {self.config!r}", where=WHERE, hint='give a target name such as "imxrt700"')
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type == "bool" and not isinstance(value, bool):
                raise OptionError(f"{field.name} is {value!r}", where=WHERE, hint="use True or False")
        for name, allowed in (("converter", CONVERTERS), ("optimize", OPTIMIZE)):
            if getattr(self, name) not in allowed:
                raise OptionError(
                    f"{name} is {getattr(self, name)!r}", where=WHERE, hint=f"one of {', '.join(allowed)}"
                )
        if self.fit_bytes is not None and (not isinstance(self.fit_bytes, int) or self.fit_bytes < 1):
            raise OptionError(
                f"fit_bytes is {self.fit_bytes!r}", where=WHERE, hint="a number of bytes above 0, or None"
            )
        if self.converter == "open":
            targets.load(self.config)
        self.conversion()

    def conversion(self, source: str = "<partition>") -> Options:
        """The converter's options for one partition."""
        options = Options(
            target=self.config,
            converter=self.converter,
            optimize=self.optimize,
            fetch_constants_to_sram=self.fetch_constants_to_sram,
            use_profiling=self.use_profiling,
            dump_kernel_selection_code=self.dump_kernel_selection_code,
            dump_intermediates=self.dump_intermediates or bool(self.intermediates_dir),
            passes_off=self.passes_off,
            fit_bytes=self.fit_bytes,
            source=source,
        )
        if self.converter == "nxp":
            return dataclasses.replace(options, extra_flags=self.extra_flags)
        return apply_flags(options, self.extra_flags, where=f"{WHERE}, extra_flags")


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
    *,
    converter: str = "open",
    optimize: str = "default",
) -> list[CompileSpec]:
    """A compile spec for `NeutronPartitioner`; every wrong value is an `OptionError` that names the field.

    `config` is the target. `operators_not_to_delegate` are exact node or operator names, or glob patterns.
    With `use_neutron_for_format_conversion` the partition transposes inside, otherwise the delegate does on the CPU.
    `intermediates_dir` is an existing folder that receives the LiteRT model, dumps, disassembly and report of each
    partition. `system_config` has no effect, as with upstream, whose scripts may give it; a warning says so.

    Example:
        >>> generate_neutron_compile_spec("imxrt700", operators_not_to_delegate=["aten.add.Tensor", "aten_mul*"])
    """
    if system_config is not None:
        warnings.warn(f"system_config={system_config!r} has no effect: config says all about the target", stacklevel=2)
    folder = os.fspath(intermediates_dir) if intermediates_dir is not None else ""
    if folder and not os.path.isdir(folder):
        raise OptionError(f"intermediates_dir {folder!r} is not a folder", where=WHERE, hint="make it first")
    return to_specs(
        NeutronOptions(
            config=config,
            extra_flags=_strings("extra_flags", extra_flags),
            operators_not_to_delegate=_strings("operators_not_to_delegate", operators_not_to_delegate),
            use_neutron_for_format_conversion=use_neutron_for_format_conversion,
            fetch_constants_to_sram=fetch_constants_to_sram,
            dump_kernel_selection_code=dump_kernel_selection_code,
            use_profiling=use_profiling,
            intermediates_dir=folder,
            converter=converter,
            optimize=optimize,
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


def to_specs(options: NeutronOptions) -> list[CompileSpec]:
    """Options as ExecuTorch carries them: a key and JSON bytes for each field."""
    from executorch.exir.backend.compile_spec_schema import CompileSpec

    fields = dataclasses.asdict(options)
    return [CompileSpec(key, json.dumps(value).encode()) for key, value in fields.items()]


def from_specs(specs: Iterable[CompileSpec]) -> NeutronOptions:
    """The inverse of `to_specs`; unknown keys and missing ones are an `OptionError`."""
    known = {field.name: field for field in dataclasses.fields(NeutronOptions)}
    values: dict[str, Any] = {}
    for spec in specs:
        if spec.key not in known:
            raise OptionError(f"unknown key {spec.key!r}", where=WHERE, hint="use generate_neutron_compile_spec(...)")
        try:
            value = json.loads(spec.value)
        except (ValueError, TypeError) as error:
            raise OptionError(f"the value of {spec.key!r} is no JSON: {spec.value!r}", where=WHERE) from error
        values[spec.key] = tuple(value) if isinstance(value, list) else value
    if "config" not in values:
        raise OptionError("there is no target", where=WHERE, hint="use generate_neutron_compile_spec(...)")
    return NeutronOptions(**values)


def _strings(name: str, given: str | Sequence[str] | None) -> tuple[str, ...]:
    items = [given] if isinstance(given, str) else list(given or ())
    for item in items:
        if not isinstance(item, str) or not item.strip():
            raise OptionError(f"{name} contains {item!r}", where=WHERE, hint="give non-empty strings")
    return tuple(item.strip() for item in items)
