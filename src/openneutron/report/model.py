"""Report: a versioned set of dataclasses, written by the compiler, with conversion to JSON and back.

Keys connect the levels: a `NodeVerdict` names its PyTorch debug handles, an `Operator` its LiteRT index, a `Kernel` its L1 node
and the LiteRT operators behind it, a `Call` its L1 node.
"""

from __future__ import annotations

import os
import re
import types
import typing
from dataclasses import dataclass, field
from typing import Any

from openneutron.errors import FormatError

VERSION = 1


@dataclass(frozen=True)
class NodeVerdict:
    """One node of the PyTorch program and its engine; `reason` and `hint` say why it was left on the CPU.

    `inputs` are the nodes whose values it reads. `engine` is "neutron", "cortex_m" or "portable". `origin` is its name in the
    quantized PyTorch module, "" if not known. `module` is the path of its nn.Module ("features.3.conv"), or its ONNX node. A
    `constant` reads no input of the program. `cpu_milliseconds` is its estimated time on the CPU, 0 on the NPU or if not known.
    """

    name: str
    operator: str
    delegated: bool
    reason: str = ""
    code: str = ""
    hint: str = ""
    source: str = ""
    debug_handle: int = -1
    partition: int = -1
    inputs: tuple[str, ...] = ()
    engine: str = ""
    origin: str = ""
    module: str = ""
    constant: bool = False
    cpu_milliseconds: float = 0.0


@dataclass(frozen=True)
class Operator:
    """One LiteRT operator of a converted model and whether it became part of a NeutronGraph.

    `inputs` are the indices of the operators whose values it reads.
    """

    index: int
    code: str
    name: str
    converted: bool
    reason: str = ""
    reason_code: str = ""
    hint: str = ""
    graph: int = -1
    debug_handles: tuple[int, ...] = ()
    inputs: tuple[int, ...] = ()


@dataclass(frozen=True)
class Kernel:
    """One L1 node with the cost of all its calls.

    `activation_bytes` are its inputs read and its output written once. `tensor` is the LiteRT tensor it makes (-1 for one that
    only the compiler knows), `first_channel` its first channel in that tensor if it makes only some of them.
    If measured, `sqnr` is how close its output is to that of the float model, in dB, and `lsb` its largest difference from
    LiteRT's reference kernels, or from what `golden` names, with its reason. `module` is the nn.Module or ONNX node behind it,
    "" for LiteRT files, whose tensors are named in `name`.
    """

    node: int
    graph: int
    kernel: str
    name: str
    operators: tuple[int, ...]
    output_shape: tuple[int, ...]
    macs: int
    calls: int
    cycles: int
    compute_cycles: int
    memory_cycles: int
    overhead_cycles: int
    weight_bytes: int
    segment: int = -1
    notes: tuple[str, ...] = ()
    activation_bytes: int = 0
    tensor: int = -1
    first_channel: int = 0
    sqnr: float | None = None
    lsb: float | None = None
    golden: str = ""
    module: str = ""

    @property
    def layer(self) -> str:
        """The name for users: its module if known."""
        return self.module or self.name

    @property
    def bound_by(self) -> str:
        """The dominant part of the cost."""
        parts = {"compute": self.compute_cycles, "memory": self.memory_cycles, "overhead": self.overhead_cycles}
        return max(parts, key=lambda part: parts[part])


@dataclass(frozen=True)
class Event:
    """One executed call or copy on the predicted timeline, in cycles."""

    graph: int
    node: int
    lane: str
    name: str
    first_row: int
    rows: int
    start: int
    end: int


@dataclass(frozen=True)
class Buffer:
    """One scratch buffer: bytes at an offset, with a live range in positions of the task list.

    `name` is that of the tensor it holds, "conv (4 rows)" where it holds some of it; `module` the nn.Module that makes it.
    """

    graph: int
    name: str
    region: str
    offset: int
    size: int
    first: int
    last: int
    module: str = ""

    @property
    def tensor(self) -> str:
        """The tensor's own name."""
        return re.sub(r" \(\d+ rows?\)$", "", self.name)

    @property
    def layer(self) -> str:
        """The name for users: its module if known, and which part of the tensor it holds."""
        return self.module + self.name[len(self.tensor) :] if self.module else self.name


@dataclass(frozen=True)
class Choice:
    """One candidate schedule of a graph: estimated scratch bytes and cycles."""

    graph: int
    scratch_bytes: int
    cycles: int


@dataclass(frozen=True)
class WhatIf:
    """One change and its effect: `option` is the command-line option, "" if the model itself must change.

    `cycles` and `peak_bytes` are those of all graphs, `milliseconds` at the clock of `target`; with `whole`, time and bytes
    are those of the whole program, including the CPU's part. `proof` is "compiled" if the program was compiled again with the
    change, "priced" if the cost model priced the affected calls again. `output_sqnr` is that of the changed program, None for
    changes that do not change results.
    """

    change: str
    option: str
    target: str
    cycles: int
    milliseconds: float
    peak_bytes: int
    proof: str = "compiled"
    output_sqnr: float | None = None
    milliseconds_low: float = 0.0
    milliseconds_high: float = 0.0
    whole: bool = False


@dataclass(frozen=True)
class Totals:
    """The most important sums. `peak_bytes` is I/O + scratch + prefetch, and the TCM on targets that have one.

    With the open runtime on a microcontroller every graph has a context, `context_bytes` together; all graphs share the largest
    `arena_bytes`: I/O, scratch and prefetch, each part rounded up to a multiple of 16. `runtime_bytes` adds the stack.
    """

    macs: int = 0
    cycles: int = 0
    milliseconds: float = 0.0
    milliseconds_low: float = 0.0
    milliseconds_high: float = 0.0
    peak_bytes: int = 0
    io_bytes: int = 0
    scratch_bytes: int = 0
    prefetch_bytes: int = 0
    tcm_bytes: int = 0
    weight_bytes: int = 0
    microcode_bytes: int = 0
    operators_total: int = 0
    operators_converted: int = 0
    neutron_graphs: int = 0
    context_bytes: int = 0
    arena_bytes: int = 0
    stack_bytes: int = 0

    @property
    def runtime_bytes(self) -> int:
        """RAM of a microcontroller that the open runtime takes; 0 if not known, as for NXP's microcode."""
        return self.context_bytes + self.arena_bytes + self.stack_bytes


@dataclass(frozen=True)
class CpuTime:
    """The CPU's estimated time for one node of the program, or for one call of the NPU with its copies.

    `engine` is "cortex_m" or "portable" for nodes of a PyTorch program, "litert" for operators of a LiteRT file, "call" for
    the call of a NeutronGraph and "copy" for the tensors transposed at its border. `module` is as in `NodeVerdict`, or
    "input x" and "output" for nodes of no module at the program's ends.
    """

    name: str
    operator: str
    engine: str
    milliseconds: float
    module: str = ""

    @property
    def layer(self) -> str:
        """The name for users: its module if known, never that of a PyTorch graph's node."""
        return self.module or (self.label if self.engine in ("cortex_m", "portable") else self.name)

    @property
    def label(self) -> str:
        """The operator without its name space and overload."""
        words = self.operator.split(".")
        return words[1] if len(words) > 1 else self.operator


@dataclass(frozen=True)
class Energy:
    """What a board takes for one inference every so often, from its currents and NXP's converter's estimated time.

    Millijoules of one inference, milliamperes in the mean, and the days that a battery lasts (0 without one), each with an
    interval; `sources` says where each current comes from. `unknown` says why there is none of it, "" if there is.
    """

    millijoules: float = 0.0
    millijoules_low: float = 0.0
    millijoules_high: float = 0.0
    milliamperes: float = 0.0
    days: float = 0.0
    days_low: float = 0.0
    days_high: float = 0.0
    sources: tuple[str, ...] = ()
    unknown: str = ""


@dataclass(frozen=True)
class Stock:
    """The result of NXP's converter and runtime for the same graph today: memory by their rules, estimated times.

    `arena_bytes` is TFLM's `kTensorArenaSize` for a LiteRT file; for a program from PyTorch it is ExecuTorch's planned memory
    plus the largest delegate's use of the temporary allocator. Weights fetched to SRAM need `prefetch_bytes` in addition.
    `cpu_constant_bytes` are constants of operators that stay on the CPU; `left` says why operators stay on the CPU, `cpu` how
    long each takes there. `sdk` is the version of NXP's converter whose rules these are, `kernel_bytes` are kernels in the file
    (on chips whose NPU has its own controller).
    `planned_bytes` is ExecuTorch's planned memory and `method_bytes` what its method allocator holds, were the same operators
    delegated in an ExecuTorch program.
    """

    sdk: str = ""
    operators_total: int = 0
    operators_converted: int = 0
    graphs: int = 0
    kernel_calls: int = 0
    scratch_bytes: int = 0
    arena_bytes: int = 0
    planned_bytes: int = 0
    method_bytes: int = 0
    prefetch_bytes: int = 0
    weight_bytes: int = 0
    microcode_bytes: int = 0
    kernel_bytes: int = 0
    cpu_constant_bytes: int = 0
    cycles: int = 0
    milliseconds: float = 0.0
    milliseconds_low: float = 0.0
    milliseconds_high: float = 0.0
    npu_milliseconds: float = 0.0
    cpu_milliseconds: float = 0.0
    left: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    cpu: tuple[CpuTime, ...] = ()


@dataclass(frozen=True)
class Whole:
    """A whole program from PyTorch; times are estimates, and 0 for the CPU if there is no model of it.

    `arena_bytes` is ExecuTorch's planned memory, `delegate_bytes` the largest delegate's use of the temporary allocator:
    scratch, prefetch and transposed copies of tensors at its border, of which there are `copies` in all. `graph_copy_bytes` has
    the bytes of those copies for each delegate, `copy_bytes` their sum. `timed` says whether there is a model of the target's
    CPU: without one, `milliseconds` are the NPU's alone. `cpu` has the parts of the CPU's time: nodes, calls and copies.
    """

    recipe: str = ""
    npu_milliseconds: float = 0.0
    cpu_milliseconds: float = 0.0
    call_milliseconds: float = 0.0
    copy_milliseconds: float = 0.0
    cpu_operators: int = 0
    copies: int = 0
    copy_bytes: int = 0
    graph_copy_bytes: tuple[int, ...] = ()
    arena_bytes: int = 0
    delegate_bytes: int = 0
    milliseconds_low: float = 0.0
    milliseconds_high: float = 0.0
    timed: bool = True
    cpu: tuple[CpuTime, ...] = ()

    @property
    def milliseconds(self) -> float:
        """NPU, CPU, calls and copies together."""
        return self.npu_milliseconds + self.cpu_milliseconds + self.call_milliseconds + self.copy_milliseconds

    @property
    def memory_bytes(self) -> int:
        """All memory that is in RAM at once."""
        return self.arena_bytes + self.delegate_bytes


@dataclass(frozen=True)
class OutputAccuracy:
    """One output of the program compared with that of the original model, on samples.

    `sqnr` is in dB, None for outputs that are integers, empty, or constant in the float model and equal here; `agreement` is
    the share of equal elements, -1 for floats; `common` is the share of the float model's most frequent integer, which a
    program that always gives that integer would reach. `part` names the piece with the lowest SQNR, `part_sqnr`: there the
    float values lie between `part_low` and `part_high`, and those of the program are `step` apart (0: one value only).
    `separate` says that this part is one that the model joins to the rest, or has a much smaller range, so that it must be as
    good as an output of its own. `wrong` counts NaN and infinities that are numbers in the other. `metric` names what the
    output means ("top1", "iou", "rank", "boxes"; "" if that is not clear), `kept` is the share of the float model's answers
    that it keeps, -1 if unknown.
    `note` is a remark that the figures do not show.
    """

    name: str
    sqnr: float | None = None
    agreement: float = -1.0
    common: float = 0.0
    part: str = ""
    part_sqnr: float | None = None
    part_low: float = 0.0
    part_high: float = 0.0
    step: float = 0.0
    separate: bool = False
    wrong: int = 0
    metric: str = ""
    kept: float = -1.0
    note: str = ""


@dataclass(frozen=True, repr=False)
class Report:
    """All results about one compiled program.

    `output_sqnr` is how close its output is to that of the float model, in dB, if measured; of several outputs the worst.
    `outputs` has them one by one, with the worst part of each. `warnings` are what a user must know before relying on the
    program. `flash_bytes` is the board's flash if that is not the chip's own, else 0. `quantization` is the quantization file
    that repeats choices found here for the sake of quality, "" if there were none.
    """

    target: str = ""
    converter: str = ""
    converter_version: str = ""
    source: str = ""
    totals: Totals = field(default_factory=Totals)
    whole: Whole = field(default_factory=Whole)
    stock: Stock = field(default_factory=Stock)
    energy: Energy = field(default_factory=Energy)
    nodes: tuple[NodeVerdict, ...] = ()
    operators: tuple[Operator, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    events: tuple[Event, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    pareto: tuple[Choice, ...] = ()
    what_ifs: tuple[WhatIf, ...] = ()
    output_sqnr: float | None = None
    outputs: tuple[OutputAccuracy, ...] = ()
    passes: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    flash_bytes: int = 0
    quantization: str = ""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    version: int = VERSION

    def table(self, what: str = "kernels") -> Any:
        """Return one of the lists as a pandas DataFrame.

        The lists are kernels, nodes, operators, events, buffers, pareto, what_ifs and outputs.

        Example:
            >>> program.report.table("kernels").sort_values("cycles", ascending=False)
        """
        from openneutron.report.frames import table

        return table(self, what)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report: `.html` for the page that opens in a browser, `.json` for all of its data.

        Example:
            >>> program.report.save("report.html")
        """
        from openneutron.files import check_target, write_file

        target = check_target(path, ".html", ".json")
        if target.suffix == ".json":
            write_file(target, to_json(self))
            return
        from openneutron.report.html import page

        write_file(target, page(self))

    def __repr__(self) -> str:
        from openneutron.report.facts import facts, title

        return "\n".join([f"<Report {title(self)}", *(f"  {label}: {text}" for label, text in facts(self)), ">"])

    def __rich__(self) -> Any:
        from openneutron.report.render import whole

        return whole(self)

    def _repr_html_(self) -> str:
        from openneutron.report.html.notebook import fragment

        return fragment(self)


def to_json(report: Report, *, indent: int | None = 2) -> str:
    """Return the report as JSON text.

    Example:
        >>> json.loads(to_json(Report(target="imxrt700")))["target"]
        'imxrt700'
    """
    import dataclasses
    import json

    return json.dumps(dataclasses.asdict(report), indent=indent)


def from_json(text: str, *, where: str = "report") -> Report:
    """Parse the output of `to_json`; a `FormatError` names an invalid value."""
    import json

    try:
        raw = json.loads(text)
    except json.JSONDecodeError as error:
        raise FormatError(f"no JSON: {error.msg} at line {error.lineno}", where=where) from error
    if not isinstance(raw, dict) or raw.get("version") != VERSION:
        found = raw.get("version") if isinstance(raw, dict) else type(raw).__name__
        raise FormatError(f"report version {found!r}, this OpenNeutron reads {VERSION}", where=where)
    return typing.cast(Report, _build(Report, raw, where))


def _build(kind: Any, raw: Any, where: str) -> Any:
    """Convert `raw` JSON to an instance of the annotated type."""
    import dataclasses

    origin = typing.get_origin(kind)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        unknown = sorted(set(raw) - set(hints)) if isinstance(raw, dict) else [type(raw).__name__]
        if unknown:
            raise FormatError(f"unexpected {unknown} in {getattr(kind, '__name__', kind)}", where=where)
        return typing.cast(Any, kind)(**{key: _build(hints[key], value, where) for key, value in raw.items()})
    if origin is tuple:
        item = typing.get_args(kind)[0]
        return tuple(_build(item, value, where) for value in raw)
    if origin is dict:
        return {key: _build(typing.get_args(kind)[1], value, where) for key, value in raw.items()}
    if origin is types.UnionType:
        return raw
    if kind is float and isinstance(raw, int):
        return float(raw)
    if not isinstance(raw, kind):
        raise FormatError(f"expected {kind.__name__}, found {raw!r}", where=where)
    return raw
