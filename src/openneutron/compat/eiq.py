"""NXP's eiq_neutron_sdk interface on our compiler, so that code written for the SDK runs unchanged.

Everything here pickles by its place in this module, so it can be passed to a subprocess. As users of that interface expect, the
converter prints its log on standard output, and with `dumpKernelSelectionCode` it writes `_kernel_selection.c` into the
current directory.

Example:
    >>> install()
    >>> from eiq_neutron_sdk import neutron_converter
    >>> context = neutron_converter.CompilationContext()
    >>> context.targetOpts = neutron_converter.getNeutronTarget("imxrt700")
    >>> converted = neutron_converter.convertModel(list(data), context)
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING

from openneutron._version import __version__
from openneutron.errors import OptionError
from openneutron.files import write_file
from openneutron.machine import targets
from openneutron.microcode.selection import merge_files
from openneutron.terminal.escapes import printable

if TYPE_CHECKING:
    from openneutron.options import Options
    from openneutron.result import Result

PACKAGE = "eiq_neutron_sdk"
SELECTION_FILE = "_kernel_selection.c"
_WHERE = "eiq_neutron_sdk surface of OpenNeutron"
# The names that each module of the SDK has.
MODULES: dict[str, tuple[str, ...]] = {
    "neutron_converter": ("CompilationContext", "CompilationOptions", "convertModel", "getNeutronTarget"),
    "neutron_compiler": ("CompilationContext", "CompilationOptions", "compileModel", "getNeutronTarget"),
    "neutron_library_utils": ("getNeutronTargets", "isNeutronTarget", "merge_kernel_selection_files"),
}
PACKAGE_NAMES = ("merge_kernel_selection_files",)
_MERGE_TOOL = "merge_kernel_selection_code"


@dataclass(frozen=True)
class NeutronNpu:
    """The array of a target; hwVersion 1 is N1, 2 is N3."""

    subsystem: bool
    numUnits: int
    numPipes: int
    numMacs: int
    hwVersion: int


@dataclass(frozen=True)
class NeutronTarget:
    """A target as the SDK describes it; code for older SDKs reads the array's figures from the target itself."""

    name: str
    npu: NeutronNpu

    @property
    def subsystem(self) -> bool:
        """True for Neutron-S, which has a controller of its own."""
        return self.npu.subsystem

    @property
    def numUnits(self) -> int:
        """Cores."""
        return self.npu.numUnits

    @property
    def numPipes(self) -> int:
        """Dot-product units of a core."""
        return self.npu.numPipes

    @property
    def numMacs(self) -> int:
        """Length of a dot product."""
        return self.npu.numMacs

    @property
    def hwVersion(self) -> int:
        """1 is N1, 2 is N3."""
        return self.npu.hwVersion


@dataclass(slots=True)
class CompilationOptions:
    """The options that code written for the SDK sets; an unknown one raises AttributeError, as there.

    `excludeGraphPasses` are names separated by commas; names of NXP's own passes have no counterpart here and are
    mentioned in the log. The dump switches print to standard output.
    """

    minNumOpsPerGraph: int = 1
    excludeGraphPasses: str = ""
    fetchConstantsToSRAM: bool = False
    dumpKernelSelectionCode: bool = False
    useProfiling: bool = False
    dumpAfterImport: bool = False
    dumpAfterGenerate: bool = False
    dumpMicrocode: bool = False
    verbose: bool = False


@dataclass(slots=True)
class CompilationContext:
    """Settings of a conversion: a target, assigned by the caller, and options."""

    targetOpts: NeutronTarget | None = None
    compilationOpts: CompilationOptions = field(default_factory=CompilationOptions)


def getNeutronTarget(name: str) -> NeutronTarget:
    """The target of that name; an `OptionError` lists the known ones.

    Example:
        >>> getNeutronTarget("imxrt700").npu.numMacs
        8
    """
    target = targets.load(name)
    return NeutronTarget(
        target.name, NeutronNpu(target.subsystem, target.cores, target.units, target.length, target.hw_version)
    )


def getNeutronTargets() -> list[NeutronTarget]:
    """Every target that can be compiled for."""
    return [getNeutronTarget(name) for name in targets.chips()]


def isNeutronTarget(name: str) -> bool:
    """True when `getNeutronTarget` knows the name."""
    return name in targets.chips()


def convertModel(model: Iterable[int] | bytes, context: CompilationContext) -> bytes:
    """Convert a LiteRT model, given as bytes or a list of ints; the log goes to standard output.

    Example:
        >>> converted = convertModel(list(data), context)
    """
    from openneutron.compiler.front import fuse
    from openneutron.convert import convert
    from openneutron.options import SCHEMA, Options, check_options

    if not isinstance(context.targetOpts, NeutronTarget):
        raise OptionError(
            f"targetOpts is {context.targetOpts!r}",
            where=_WHERE,
            hint="assign getNeutronTarget(name) before converting",
        )
    given = context.compilationOpts
    named = [name.strip() for name in given.excludeGraphPasses.split(",") if name.strip()]
    same = {one.name: getattr(given, one.sdk) for one in SCHEMA.values() if one.sdk}
    own = {
        "target": context.targetOpts.name,
        "passes_off": tuple(name for name in named if name in fuse.names()),
        "dump_intermediates": given.dumpAfterGenerate or given.dumpMicrocode,
    }
    options = Options(**check_options(same | own, where=_WHERE))
    foreign = [name for name in named if name not in fuse.names()]
    data = _as_bytes(model)
    result = convert(data, options)
    if given.minNumOpsPerGraph <= 1 and result.report.totals.neutron_graphs == 0:
        # Users of this interface expect a graph even for operators that only rename bytes, which we otherwise leave
        # out.
        result = convert(data, replace(options, one_graph=True))
    _print_log(result, options, given, foreign, data)
    if given.dumpKernelSelectionCode:
        write_file(SELECTION_FILE, result.kernel_selection_code)
    return result.model


def compileModel(model: Iterable[int] | bytes, context: CompilationContext) -> bytes:
    """Convert a LiteRT model; the newer name of `convertModel`.

    Example:
        >>> converted = compileModel(list(data), context)
    """
    return convertModel(model, context)


def merge_kernel_selection_files(input_files: Sequence[str], output_file: str) -> None:
    """Merge kernel selections of several models into one file.

    Example:
        >>> merge_kernel_selection_files(["a_kernel_selection.c", "b_kernel_selection.c"], "kernel_selection.c")
    """
    merge_files(input_files, output_file)


def _as_bytes(model: Iterable[int] | bytes) -> bytes:
    try:
        return bytes(model)
    except (TypeError, ValueError) as error:
        raise OptionError(f"the model is no list of bytes ({error})", where=_WHERE) from None


def _print_log(result: Result, options: Options, given: CompilationOptions, foreign: list[str], data: bytes) -> None:
    lines = [f"OpenNeutron {__version__} for {options.target}"]
    if foreign:
        lines.append(f"Passes to exclude that do not exist here: {', '.join(foreign)}")
    if given.dumpAfterImport:
        lines += _list_operators(data)
    for name, text in result.intermediates.items():
        wanted = given.dumpMicrocode if name.endswith(".microcode.txt") else given.dumpAfterGenerate
        if wanted:
            lines += [f"{name}:", text.rstrip("\n")]
    if given.verbose:
        totals = result.report.totals
        lines.append(
            f"{totals.cycles} cycles, {totals.scratch_bytes} bytes of scratch, {totals.weight_bytes} of weights, "
            f"{totals.microcode_bytes} of microcode"
        )
    print(printable("\n".join([*lines, result.log.rstrip("\n")])), flush=True)


def _list_operators(data: bytes) -> list[str]:
    from openneutron.litert.read import read_model

    graph = read_model(data).main
    names = [tensor.name for tensor in graph.tensors]
    rows = ["after import:"]
    for op in graph.operators:
        inputs = ", ".join(names[t] if t >= 0 else "-" for t in op.inputs)
        rows.append(f"  {', '.join(names[t] for t in op.outputs)} = {op.label}({inputs})")
    return rows


def install() -> bool:
    """Make `import eiq_neutron_sdk` work in this process; returns False if a real one is installed, which is kept.

    Example:
        >>> install()
        True
    """
    present = sys.modules.get(PACKAGE)
    if present is not None:
        return bool(getattr(present, "OPENNEUTRON_COMPATIBILITY", False))
    if importlib.util.find_spec(PACKAGE) is not None:
        return False
    package = _module(PACKAGE, PACKAGE_NAMES, is_package=True)
    vars(package).update(OPENNEUTRON_COMPATIBILITY=True, __version__=__version__)
    for name, members in MODULES.items():
        is_package = name == "neutron_library_utils"
        part = _module(f"{PACKAGE}.{name}", members, is_package=is_package)
        setattr(package, name, part)
    tool = importlib.import_module(f"openneutron.compat.{_MERGE_TOOL}")
    sys.modules[f"{PACKAGE}.neutron_library_utils.{_MERGE_TOOL}"] = tool
    setattr(sys.modules[f"{PACKAGE}.neutron_library_utils"], _MERGE_TOOL, tool)
    return True


def _module(name: str, members: tuple[str, ...], *, is_package: bool) -> ModuleType:
    module = ModuleType(name, f"OpenNeutron's stand-in for NXP's {name}.")
    # Without a spec, a later find_spec(name) by other code would raise instead of finding the module.
    module.__spec__ = importlib.util.spec_from_loader(name, loader=None, is_package=is_package)
    if is_package:
        module.__path__ = []
    vars(module).update({member: globals()[member] for member in members})
    sys.modules[name] = module
    return module
