"""The options of a compile, each described once: name, default, range, meaning, and who takes it.

The command line, `openneutron.compile`, compile specs, recipes, the `eiq_neutron_sdk` surface, NXP's converter and the
reference page are made from this table. A new option is one field here, and the code that obeys it.

Example:
    >>> SCHEMA["fit_bytes"].flag
    '--fit'
    >>> read_text(SCHEMA["fit_bytes"], "256K")
    262144
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from openneutron.errors import OptionError
from openneutron.terminal.sizes import parse_size

# The chip that is compiled for when none is named.
DEFAULT_TARGET = "imxrt700"
_LARGEST_NUMBER = 100.0  # decibels, and times the cycles: more than any result reaches
CONVERTERS = ("open", "nxp")
OPTIMIZE = ("fast", "default", "max")
PLACEMENTS = ("all", "fastest")
WEIGHTS = ("int8", "int4")
OBSERVERS = ("histogram", "minmax", "moving_average", "percentile", "mse")
# Versions of NXP's converter that the board's estimate can follow, the newest last; rules are in `board/rules.toml`.
SDK_VERSIONS = ("2.x", "3.0", "3.1", "3.2")
METRICS = ("sqnr", "auto", "top1", "iou", "rank", "boxes")

Kind = Literal["text", "switch", "bytes", "count", "number", "level", "names", "table"]
# What a model can come from; an option that only one of them has is refused for the others.
TORCH, LITERT = "PyTorch", "LiteRT"
EVERY = (TORCH, LITERT)


@dataclass(frozen=True)
class Option:
    """One option. `flag` is its spelling on the command line, "" where it has none; `off` that of a switch's False.

    `key` is its name in compile specs, "" where it does not travel to the backend; `sdk` its name among the options of
    NXP's converter. `fronts` and `converters` take it. `public` ones are keywords of `openneutron.compile`. `globs` are
    patterns of names, several of which may stand in one text between commas; within a pattern, `?` stands for a comma.
    """

    help: str
    kind: Kind = "text"
    flag: str = ""
    off: str = ""
    key: str = ""
    sdk: str = ""
    choices: tuple[str, ...] = ()
    fronts: tuple[str, ...] = EVERY
    converters: tuple[str, ...] = CONVERTERS
    public: bool = True
    globs: bool = False
    name: str = ""
    default: Any = None

    def spelling(self, value: Any) -> str:
        """Return the flag that gives this value, "" where the command line has none."""
        return self.off if value is False else self.flag

    @property
    def flags(self) -> str:
        """Every spelling on the command line, as typer takes them."""
        return "/".join(filter(None, (self.flag, self.off)))


def _option(default: Any, help: str, **more: Any) -> Any:
    kinds: dict[type, Kind] = {bool: "switch", tuple: "names", int: "count"}
    more.setdefault("kind", kinds.get(type(default), "text"))
    return field(default=default, metadata={"help": help, **more})


@dataclass(frozen=True)
class Options:
    """All options of a compile with their defaults."""

    target: str = _option(DEFAULT_TARGET, "The chip (`openneutron targets`).", flag="--target", key="config")
    converter: str = _option(
        "open", "open: ours. nxp: NXP's SDK, if installed.", flag="--converter", key="converter", choices=CONVERTERS
    )
    recipe: str = _option(
        "neutron", "Engines of a PyTorch program: neutron, cortex_m (no NPU) or imxrt700cm (both).",
        flag="--recipe", fronts=(TORCH,),
    )  # fmt: skip
    placement: str = _option(
        "all", "all: whatever the NPU can run. fastest: only what pays.",
        flag="--placement", fronts=(TORCH,), choices=PLACEMENTS,
    )  # fmt: skip
    optimize: str = _option(
        "default", "How hard to search: fast, default or max.",
        flag="--optimize", key="optimize", choices=OPTIMIZE, converters=("open",),
    )  # fmt: skip
    fit_bytes: int | None = _option(
        None, "Budget for I/O + scratch + prefetch, e.g. 256K.",
        kind="bytes", flag="--fit", key="fit_bytes", converters=("open",),
    )  # fmt: skip
    flash_bytes: int | None = _option(
        None, "Flash of the board, where that is external and not the chip's own, e.g. 16M: what the program must fit.",
        kind="bytes", flag="--flash",
    )  # fmt: skip
    cut_head: bool = _option(
        False, "End a detector from an ONNX or LiteRT file where top-k and non-maximum suppression begin.",
        flag="--cut-head",
    )  # fmt: skip
    duty: str = _option(
        "", "How often it runs, such as 1/s or 10/min: energy per inference, where the chip's currents are public.",
        flag="--duty",
    )  # fmt: skip
    battery: str = _option(
        "", "The battery, such as 230mAh@3V: how long it lasts at --duty.", flag="--battery",
    )  # fmt: skip
    board_points: str = _option(
        "", "Learn the board's time from your own measurements, a ledger of `openneutron board profile`.",
        flag="--board-points", key="board_points",
    )  # fmt: skip
    sdk: str = _option(
        SDK_VERSIONS[-1], "Version of NXP's converter that the board's estimate follows.",
        flag="--sdk", key="sdk", choices=SDK_VERSIONS,
    )  # fmt: skip
    fetch_constants_to_sram: bool = _option(
        False, "Prefetch weights from flash.",
        flag="--fetch-constants-to-sram", key="fetch_constants_to_sram", sdk="fetchConstantsToSRAM",
    )  # fmt: skip
    use_profiling: bool = _option(
        False, "Record each kernel call.", flag="--use-profiling", key="use_profiling", sdk="useProfiling"
    )
    dump_kernel_selection_code: bool = _option(
        False, "Write *_kernel_selection.c beside the output.",
        flag="--dump-kernel-selection", key="dump_kernel_selection_code", sdk="dumpKernelSelectionCode",
    )  # fmt: skip
    operators_not_to_delegate: tuple[str, ...] = _option(
        (), "Keep this operator on the CPU (name or glob; repeatable, or several with commas).",
        flag="--not-delegate", key="operators_not_to_delegate", converters=("open",), globs=True,
    )  # fmt: skip
    passes_off: tuple[str, ...] = _option(
        (), "Leave out this compiler pass (repeatable).", flag="--pass-off", key="passes_off", sdk="excludeGraphPasses"
    )
    per_channel: bool = _option(
        True, "A weight scale for each output channel of PyTorch models, or one for all of a tensor.",
        flag="--per-channel", off="--per-tensor", fronts=(TORCH,),
    )  # fmt: skip
    observer: str = _option(
        "histogram",
        "What finds the ranges of activations of PyTorch models: histogram, minmax, moving_average, percentile or mse.",
        flag="--observer", fronts=(TORCH,), choices=OBSERVERS,
    )  # fmt: skip
    exclude: tuple[str, ...] = _option(
        (), "Leave this layer of a PyTorch model in float: module path, class or operator (name or glob; repeatable, or "
        "several with commas).",
        flag="--exclude", fronts=(TORCH,), globs=True,
    )  # fmt: skip
    activations: str = _option(
        "int8", "Activations of models that are quantized here: int8, or int16 for LiteRT's 16x8 scheme.",
        flag="--activations", fronts=(TORCH,), choices=("int8", "int16"),
    )  # fmt: skip
    weights: str = _option(
        "int8", "Weights of linear layers and 1x1 convolutions of PyTorch models: int8, or int4 in groups of inputs.",
        flag="--weights", fronts=(TORCH,), choices=WEIGHTS,
    )  # fmt: skip
    group_size: int = _option(
        32, "Inputs that share a scale of 4-bit weights: 16, 32, 64 or 128; 0: all inputs of an output channel.",
        kind="count", flag="--group-size", fronts=(TORCH,),
    )  # fmt: skip
    precision: tuple[str, ...] = _option(
        (), "Other activations for some: PATTERN=int16, the pattern as a module, type or node is called (repeatable).",
        flag="--precision", fronts=(TORCH,),
    )  # fmt: skip
    quantization: str = _option(
        "", "A quantization file (.toml) with choices for PyTorch models and their layers; in Python also a mapping.",
        kind="table", flag="--quantization", fronts=(TORCH,),
    )  # fmt: skip
    equalize: bool = _option(
        False, "Equalize the channels of activations between layers of PyTorch models, for one scale per tensor.",
        flag="--equalize", fronts=(TORCH,),
    )  # fmt: skip
    smooth: bool = _option(
        False, "Move outliers behind layer norms of PyTorch models into the weights that read them.",
        flag="--smooth", fronts=(TORCH,),
    )  # fmt: skip
    correct_bias: bool = _option(
        False, "Correct biases of PyTorch models so that each channel keeps its mean.",
        flag="--correct-bias", fronts=(TORCH,),
    )  # fmt: skip
    adaround: bool = _option(
        False, "Round weights of PyTorch models up or down for the layer's result on the calibration data.",
        flag="--adaround", fronts=(TORCH,),
    )  # fmt: skip
    fit_ranges: bool = _option(
        False, "End ranges in PyTorch models where the operators behind do not see the difference; give results some room.",
        flag="--fit-ranges", fronts=(TORCH,),
    )  # fmt: skip
    state_headroom: float = _option(
        1.0, "How many times the range that calibration saw in states (changed buffers) of PyTorch models they get.",
        kind="number", flag="--state-headroom", fronts=(TORCH,),
    )  # fmt: skip
    quality: str | float = _option(
        "auto", "auto: look for better choices below 25 dB, or the metric. plain: do not. A number: dB to reach.",
        kind="level", flag="--quality", fronts=(TORCH,), choices=("auto", "plain"),
    )  # fmt: skip
    quality_cycles: float = _option(
        1.2, "How many times the cycles of 8 bits 16-bit layers may take for the sake of quality.",
        kind="number", flag="--quality-cycles", fronts=(TORCH,),
    )  # fmt: skip
    metric: str = _option(
        "sqnr", "What quality means: sqnr, or 99 % of top1, iou, rank, boxes; auto: the one that fits.",
        flag="--metric", fronts=(TORCH,), choices=METRICS,
    )  # fmt: skip
    channels_last: bool = _option(
        False, "Channels-last inputs for PyTorch models.", flag="--channels-last", fronts=(TORCH,)
    )
    int8_io: bool = _option(
        False, "INT8 inputs and outputs for PyTorch models: nothing is quantized at the border.",
        flag="--int8-io", fronts=(TORCH,),
    )  # fmt: skip
    trust: bool = _option(
        False, "Load a .pt2 file: whoever wrote it can run code on this machine.", flag="--trust", fronts=(TORCH,)
    )
    use_neutron_for_format_conversion: bool = _option(
        False, "The NPU transposes; otherwise the delegate does on the CPU, and a .tflite from ONNX takes NHWC, not NCHW.",
        flag="--npu-transposes", key="use_neutron_for_format_conversion", fronts=(TORCH,),
    )  # fmt: skip
    dump_intermediates: bool = _option(
        False, "Keep LiteRT models, L1/L2 dumps and disassembly.", key="dump_intermediates"
    )
    certificate: bool = _option(
        False, "Keep the proof of the schedule, for `openneutron certify`.", fronts=(LITERT,), converters=("open",)
    )
    minimum_operators_per_graph: int = _option(
        1, "Smaller groups of operators stay where they are.", sdk="minNumOpsPerGraph", public=False
    )
    one_graph: bool = _option(
        False, "All operators in one NeutronGraph, also those that only rename bytes; what does not fit is an error.",
        public=False,
    )  # fmt: skip
    extra_flags: tuple[str, ...] = _option(
        (),
        "Options as text: of this table for the open converter, verbatim for NXP's.",
        key="extra_flags",
        public=False,
    )
    intermediates_dir: str = _option("", "Folder for each partition's dumps.", key="intermediates_dir", public=False)
    kernel_selection_dir: str = _option(
        "", "Folder for each partition's kernel selection.", key="kernel_selection_dir", public=False
    )
    partition: int = _option(0, "The partition's number, filled in by the partitioner.", key="partition", public=False)
    source: str = _option("<model>", "The model's name in messages.", public=False)
    timeout_seconds: int = _option(600, "How long NXP's converter may take.", converters=("nxp",), public=False)
    known_weights: Any = None  # those of another method, which this one shares (`plan/constants.py`); not for users


SCHEMA: dict[str, Option] = {
    one.name: Option(name=one.name, default=one.default, **one.metadata) for one in fields(Options) if one.metadata
}
# Changes of a PyTorch program that cost no accuracy and concern all of it: worth trying where it is late or too large.
PROGRAM_CHANGES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Take and give INT8, so that nothing is quantized at the border", {"int8_io": True}),
    ("Take channels-last inputs, so that nothing is transposed", {"channels_last": True}),
    ("Take and give INT8, channels last", {"int8_io": True, "channels_last": True}),
    ("Leave to the CPU what it runs faster", {"placement": "fastest"}),
)
PUBLIC = tuple(one for one in SCHEMA.values() if one.public)


def check_options(given: Mapping[str, Any], *, where: str = "", known: Mapping[str, Option] = SCHEMA) -> dict[str, Any]:
    """Return the given values after checking types and ranges; an `OptionError` names the wrong option.

    Example:
        >>> check_options({"passes_off": ["fuse_pad"]})
        {'passes_off': ('fuse_pad',)}
    """
    found = {}
    for name, value in given.items():
        if name not in known:
            import difflib

            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            raise OptionError(f"unknown option {name!r}", where=where, hint=hint)
        found[name] = _check_value(known[name], value, where)
    return found


def _check_value(option: Option, value: Any, where: str) -> Any:
    if option.kind == "names":
        pairs = tuple(f"{key}={one}" for key, one in value.items()) if isinstance(value, Mapping) else value
        names = tuple(pairs.split(",")) if isinstance(pairs, str) else tuple(pairs)
        if option.globs:
            names = tuple(part for one in names for part in (one.split(",") if isinstance(one, str) else (one,)))
        for one in names:
            if not isinstance(one, str) or not one.strip():
                raise OptionError(f"{option.name} contains {one!r}", where=where, hint="give names as strings")
        return tuple(one.strip() for one in names)
    if option.kind == "table":
        if isinstance(value, Mapping):
            import json

            return json.dumps(value, sort_keys=True)  # a text can be compared, hashed and sent to other machines
        value = os.fspath(value) if isinstance(value, os.PathLike) else value
    if option.kind in ("level", "number"):
        return _check_number(option, value, where)
    right = {
        "switch": (isinstance(value, bool), "use True or False"),
        "count": (isinstance(value, int) and not isinstance(value, bool), "give a whole number"),
        "bytes": (value is None or (isinstance(value, int) and value > 0), "give a number of bytes above 0, or None"),
        "text": (isinstance(value, str), f"give a text such as {option.default!r}"),
        "table": (isinstance(value, str), "give the path of a .toml file"),
    }
    ok, hint = right[option.kind]
    if ok and option.choices and value not in option.choices:
        ok, hint = False, f"one of {', '.join(option.choices)}"
    if not ok:
        raise OptionError(f"{option.name} is {value!r}", where=where, hint=hint)
    return value


def _check_number(option: Option, value: Any, where: str) -> Any:
    """Return a number of at least 1, or one of the option's words."""
    if value in option.choices:
        return value
    try:
        found = float(value) if not isinstance(value, bool) else 0.0
    except (TypeError, ValueError):
        found = 0.0
    if not 1 <= found <= _LARGEST_NUMBER:
        words = "".join(f"{one}, " for one in option.choices)
        hint = f"give {words}{'or ' if words else ''}a number from 1 to {_LARGEST_NUMBER:g}"
        raise OptionError(f"{option.name} is {value!r}", where=where, hint=hint)
    return found


def refuse_inapplicable(given: Mapping[str, Any], front: str, *, hint: str) -> None:
    """Raise an `OptionError` for options that do not apply to models of this kind and are not at their defaults."""
    for name, value in given.items():
        option = SCHEMA[name]
        if front not in option.fronts and value != option.default:
            flag = option.spelling(value)
            spelling = f"{name} ({flag})" if flag else name
            raise OptionError(f"{spelling} is for {' and '.join(option.fronts)} models", hint=hint)


def read_text(option: Option, text: str) -> Any:
    """Parse an option's value from text; an `OptionError` says what is accepted.

    Example:
        >>> read_text(SCHEMA["passes_off"], "fuse_pad,fuse_lut")
        ('fuse_pad', 'fuse_lut')
    """
    if option.kind == "bytes":
        return parse_size(text, option=option.flag or option.name)
    if option.kind == "count":
        if not text.isdigit():
            raise OptionError(f"{option.flag or option.name} is {text!r}", hint="give a whole number")
        return int(text)
    if option.kind == "names":
        names = tuple(part.strip() for part in text.split(",") if part.strip())
        if not names:
            raise OptionError(f"{option.flag or option.name} is {text!r}", hint="give names separated by commas")
        return names
    return _check_value(option, text, "")


def unmatched_warnings(option: str, patterns: Sequence[str]) -> tuple[str, ...]:
    """Return warnings about patterns of an option that match nothing."""
    return tuple(f"{option}: {one!r} matches no node, so it has no effect" for one in patterns)
