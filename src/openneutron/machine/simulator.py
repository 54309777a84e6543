"""Thin binding to libopenneutron: runs microcode on the host, bit for bit and cycle for cycle.

Example:
    >>> with Simulator(microcode, weights, kernels) as simulator:
    ...     (scores,) = simulator.run([image])
    ...     print(simulator.cycles)
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.errors import OptionError, RuntimeFailure
from openneutron.machine import driver
from openneutron.machine.pricing import Cost
from openneutron.microcode.table import ALIGNMENT, ElementType, Region

Array = npt.NDArray[Any]

DTYPES: dict[ElementType, npt.DTypeLike] = {
    ElementType.INT8: np.int8, ElementType.UINT8: np.uint8, ElementType.INT16: np.int16, ElementType.INT32: np.int32,
    ElementType.INT64: np.int64, ElementType.FLOAT32: np.float32, ElementType.BOOL: np.bool_,
}  # fmt: skip
GUARD = 64  # bytes on both sides of every buffer: an off-by-one row of the smallest tensors lands in them
GUARD_BYTE = 0xC3  # neither zero nor a likely result
POISON_BYTE = 0xA5  # what unwritten memory reads as when poisoned


@dataclass(frozen=True)
class ModelInfo:
    """Header and identity of a prepared model."""

    target: str
    format_version: int
    converter_version: tuple[int, int, int]
    scratch_bytes: int
    prefetch_bytes: int
    profile_bytes: int
    debug_bytes: int
    tcm_bytes: int
    state_bytes: int
    calls: int
    profiling: bool


@dataclass(frozen=True)
class TensorInfo:
    """One input or output of a prepared model."""

    is_output: bool
    index: int
    dtype: ElementType
    shape: tuple[int, ...]
    bytes: int
    scale: float
    zero_point: int

    @property
    def name(self) -> str:
        """Position in words, for messages."""
        return f"{'output' if self.is_output else 'input'} {self.index}"


@dataclass(frozen=True)
class Event:
    """One executed kernel call, or a copy (kernel ""), in cycles from the start of the run; `tag` is the L1 node."""

    kernel: str
    tag: int
    first_row: int
    rows: int
    start: int
    end: int
    cost: Cost
    macs: int
    bytes: int


@dataclass(frozen=True)
class Sums:
    """All events of one node, or all copies of one channel (kernel ""): from the first one's start to the last one's end."""

    kernel: str
    tag: int
    calls: int
    rows: int
    start: int
    end: int
    cycles: int
    cost: Cost
    macs: int
    bytes: int


_GUARDED = bytes([GUARD_BYTE]) * GUARD


class _Buffer:
    """Aligned bytes between two guards."""

    def __init__(self, size: int) -> None:
        try:
            room = np.empty(size + 2 * GUARD + ALIGNMENT, np.uint8)
        except MemoryError:
            raise RuntimeFailure(f"this machine has no {size} bytes for a buffer of the model") from None
        start = GUARD + (-(room.ctypes.data + GUARD)) % ALIGNMENT
        self._before, self._after = room[start - GUARD : start], room[start + size : start + size + GUARD]
        self._before[:] = self._after[:] = GUARD_BYTE
        self.data = room[start : start + size]
        self.pointer = ctypes.c_void_p(self.data.ctypes.data)

    def intact(self) -> bool:
        return self._before.tobytes() == self._after.tobytes() == _GUARDED


def copy_in(data: bytes) -> _Buffer:
    """A copy of `data` where the driver reads it."""
    buffer = _Buffer(len(data))
    buffer.data[:] = np.frombuffer(data, np.uint8)
    return buffer


class Simulator:
    """A prepared model. Its buffers are made once; `run` may be called any number of times, by one thread at a time.

    Scratch, prefetch, TCM and outputs are cleared before each run; `poison` fills them with a pattern instead, so that
    reading what was never written shows. `timeout_seconds` bounds a run; 0 lifts the limit, and without it
    OPENNEUTRON_TIMEOUT decides, or the driver's minute. `threads` share the rows of large calls; without it
    OPENNEUTRON_THREADS decides, or it is one. Writes outside a buffer raise `RuntimeFailure` in any case.
    `where` names the file in messages.
    """

    def __init__(
        self,
        microcode: bytes,
        weights: bytes,
        kernels: bytes,
        *,
        timeout_seconds: int | None = None,
        threads: int | None = None,
        poison: bool = False,
        where: str = "",
    ) -> None:
        self._where = where
        self._blocks = [copy_in(block) for block in (microcode, weights, kernels)]
        pointers = [block.pointer for block in self._blocks]
        timeout = driver.TIMEOUT_DEFAULT if timeout_seconds is None else timeout_seconds
        config = driver.ModelConfig(*pointers, timeout)
        # The buffers of a run are made below as large as the header asks for, within the largest memory of any target.
        sizes = driver.ModelSizes(len(microcode), len(weights), len(kernels), 2**31, 2**31)
        self._handle = driver.prepare(config, sizes, where)
        self._finalizer = weakref.finalize(self, driver.unprepare, self._handle)
        if threads is not None:
            driver.check(driver.library().neutronSetThreads(self._handle, threads), self._handle)
        if poison:
            driver.check(driver.library().neutronSetFill(self._handle, POISON_BYTE), self._handle)
        self.info = _info(self._handle)
        self.tensors = _tensors(self._handle)
        self._state_view: Array | None = None  # while a run with events is in flight
        self._inputs = [_Buffer(t.bytes) for t in self.inputs]
        self._outputs = [_Buffer(t.bytes) for t in self.outputs]
        self._scratch, self._prefetch = _Buffer(self.info.scratch_bytes), _Buffer(self.info.prefetch_bytes)
        self._profile = _Buffer(self.info.profile_bytes)
        inputs = (ctypes.c_void_p * max(len(self._inputs), 1))(*(b.pointer for b in self._inputs))
        behind = (self._scratch.pointer, self._profile.pointer, None)
        outputs = (ctypes.c_void_p * (len(self._outputs) + 3))(*(b.pointer for b in self._outputs), *behind)
        self._data = driver.DataConfig(inputs, outputs, None, self._prefetch.pointer)

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """The inputs of `run`, in order."""
        return tuple(t for t in self.tensors if not t.is_output)

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """The results of `run`, in order."""
        return tuple(t for t in self.tensors if t.is_output)

    @property
    def cycles(self) -> int:
        """Simulated cycles of the last run."""
        return driver.cycles(self._open())

    @property
    def profile(self) -> bytes:
        """The profile buffer of the last run, 16 bytes per record; empty unless compiled with profiling."""
        return self._profile.data.tobytes()

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Run once; arrays must have the types and shapes of `self.inputs`."""
        handle = self._open()
        self._fill(inputs)
        driver.check(driver.library().neutronRunBlocking(handle, ctypes.byref(self._data)), handle, self._where)
        for name, buffer in self._guarded_buffers():
            if not buffer.intact():
                raise RuntimeFailure(f"the run wrote outside {name} of {buffer.data.size} bytes", where=self._where)
        return [
            buffer.data.copy().view(DTYPES[tensor.dtype]).reshape(tensor.shape)
            for tensor, buffer in zip(self.outputs, self._outputs, strict=True)
        ]

    def repeat(self) -> None:
        """Run again on the inputs of the last `run`, without copies and without looking at the guards: for timing.

        Example:
            >>> simulator.run([image])
            >>> timeit.timeit(simulator.repeat, number=100)
        """
        handle = self._open()
        driver.check(driver.library().neutronRunBlocking(handle, ctypes.byref(self._data)), handle, self._where)

    @property
    def handle(self) -> int:
        """The driver's handle, for calls that take several."""
        return self._open().value or 0

    @property
    def prefetch_address(self) -> int:
        """The address of the memory for prefetched constants."""
        return self._prefetch.pointer.value or 0

    def buffers_behind(self, outputs: Array) -> Array:
        """Return rows of output addresses, each followed by this simulator's scratch, profile and debug."""
        own = [self._scratch.pointer.value or 0, self._profile.pointer.value or 0, 0]
        return np.concatenate([outputs, np.tile(np.array(own, np.uint64), (len(outputs), 1))], axis=1)

    def run_with_events(self, inputs: Sequence[Array]) -> tuple[list[Array], list[Event]]:
        """Execute `run`; also return the timeline of every executed call and copy.

        Example:
            >>> outputs, events = simulator.run_with_events([image])
        """
        events: list[Event] = []
        return self.run_watched(inputs, events.append), events

    def run_watched(self, inputs: Sequence[Array], watch: Callable[[Event], None]) -> list[Array]:
        """Execute `run` and call `watch` after each kernel call and copy; `memory` then shows their results.

        An exception of `watch` is raised after the run.

        Example:
            >>> outputs = simulator.run_watched([image], print)
        """
        failures: list[Exception] = []

        def sink(context: int | None, pointer: Any) -> None:
            e = pointer.contents
            cost = Cost(e.compute, e.memory, e.overhead)
            name = driver.kernel_name(e.kernel) if e.kernel else ""
            # An exception cannot pass through the driver's C frames: the first one waits for the end of the run.
            if not failures:
                try:
                    watch(Event(name, e.tag, e.firstRow, e.rows, e.start, e.end, cost, e.macs, e.bytes))
                except Exception as error:
                    failures.append(error)

        outputs = self._run_into(sink, inputs)
        if failures:
            raise failures[0]
        return outputs

    def run_with_sums(self, inputs: Sequence[Array]) -> tuple[list[Array], list[Sums]]:
        """Execute `run`; also return the sums of events by node, and of copies by channel.

        Their memory does not grow with the number of iterations.

        Example:
            >>> outputs, sums = simulator.run_with_sums([image])
            >>> max(sums, key=lambda one: one.cycles).kernel
        """
        rows: dict[tuple[int, int], list[int]] = {}

        def sink(context: int | None, pointer: Any) -> None:
            e = pointer.contents
            key = e.kernel, e.tag
            row = rows.get(key)
            if row is None:
                row = rows[key] = [0, 0, e.start, 0, 0, 0, 0, 0, 0, 0]
            start, end = e.start, e.end
            row[0] += 1
            row[1] += e.rows
            row[3] = end
            row[4] += end - start
            row[5] += e.compute
            row[6] += e.memory
            row[7] += e.overhead
            row[8] += e.macs
            row[9] += e.bytes

        outputs = self._run_into(sink, inputs)
        found: list[Sums] = []
        for (kernel, tag), (calls, height, start, end, cycles, *cost, macs, size) in rows.items():
            name = driver.kernel_name(kernel) if kernel else ""
            found.append(Sums(name, tag, calls, height, start, end, cycles, Cost(*cost), macs, size))
        return outputs, found

    def _run_into(self, sink: Callable[[int | None, Any], None], inputs: Sequence[Array]) -> list[Array]:
        handle = self._open()
        self._state_view = self.memory(Region.STATE)  # the driver gives it out only between runs
        held = driver.EventSink(sink)
        driver.check(driver.library().neutronSetEventSink(handle, held, None), handle, self._where)
        try:
            return self.run(inputs)
        finally:
            driver.library().neutronSetEventSink(handle, driver.EventSink(), None)
            self._state_view = None

    def memory(self, region: Region, index: int = 0) -> Array:
        """Return the current bytes of a region: a view, not a copy.

        Scratch holds what each call left only while somebody watches the run; otherwise rows may be held elsewhere.

        Example:
            >>> simulator.memory(Region.SCRATCH)[:16]
        """
        buffers = {Region.INPUT: self._inputs, Region.OUTPUT: self._outputs, Region.WEIGHTS: self._blocks[1:2],
                   Region.SCRATCH: [self._scratch], Region.PREFETCH: [self._prefetch]}  # fmt: skip
        if region is Region.STATE and self._state_view is not None:
            return self._state_view
        if region in (Region.TCM, Region.STATE):
            address, size = (driver.tcm if region is Region.TCM else driver.state)(self._open())
            return (
                np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address)) if size else np.empty(0, np.uint8)
            )
        return buffers[region][index].data

    def reset(self) -> None:
        """Restore the initial contents of the state, as before the first run.

        Example:
            >>> simulator.reset()
        """
        handle = self._open()
        driver.check(driver.library().neutronStateReset(handle), handle, self._where)

    @property
    def state(self) -> bytes:
        """What the model keeps from run to run, to be saved; setting it restores. Empty where it keeps nothing."""
        return self.memory(Region.STATE).tobytes()

    @state.setter
    def state(self, saved: bytes) -> None:
        handle = self._open()
        driver.check(driver.library().neutronStateSet(handle, saved, len(saved)), handle, self._where)

    def close(self) -> None:
        """Release the native model; further runs raise."""
        self._finalizer()

    def __enter__(self) -> Simulator:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def _open(self) -> ctypes.c_void_p:
        if not self._finalizer.alive:
            raise RuntimeFailure("the simulator is closed", where=self._where)
        return self._handle

    def _guarded_buffers(self) -> list[tuple[str, _Buffer]]:
        named = [(t.name, b) for t, b in zip(self.tensors, [*self._inputs, *self._outputs], strict=True)]
        blocks = list(zip(("the microcode", "the weights", "the kernels"), self._blocks, strict=True))
        rest = [("scratch", self._scratch), ("prefetch", self._prefetch), ("profile", self._profile)]
        return [*named, *blocks, *rest]

    def _fill(self, inputs: Sequence[Array]) -> None:
        if len(inputs) != len(self._inputs):
            raise OptionError(f"the model takes {len(self._inputs)} inputs, {len(inputs)} were given")
        for tensor, buffer, array in zip(self.inputs, self._inputs, inputs, strict=True):
            expected = np.dtype(DTYPES[tensor.dtype])
            if array.dtype != expected or array.shape != tensor.shape:
                raise OptionError(
                    f"{tensor.name} is {array.dtype} {array.shape}, the model takes {expected} {tensor.shape}",
                    where=self._where,
                )
            buffer.data[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def run_each(simulators: Sequence[Simulator], inputs: Array, outputs: Array) -> int:
    """Run simulators of one model on memory of the caller, each on a thread of its own: no Python runs meanwhile.

    Rows are the samples' addresses of all inputs and of all outputs, aligned. Gives back how many samples went well before
    the first that failed.

    Example:
        >>> run_each([simulator, another], np.array([[image.ctypes.data]]), np.array([[scores.ctypes.data]]))
        1
    """
    samples, done = len(inputs), ctypes.c_size_t()
    given = np.ascontiguousarray(inputs, np.uint64)
    rows = np.arange(samples, dtype=np.uint64)
    configs = np.zeros((len(simulators), samples, 4), np.uint64)  # rows of NeutronDataConfig
    held = [one.buffers_behind(outputs) for one in simulators]
    for config, simulator, taken in zip(configs, simulators, held, strict=True):
        config[:, 0] = given.ctypes.data + given.strides[0] * rows
        config[:, 1] = taken.ctypes.data + taken.strides[0] * rows
        config[:, 3] = simulator.prefetch_address
    handles = (ctypes.c_void_p * len(simulators))(*(one.handle for one in simulators))
    driver.library().neutronRunEach(handles, len(simulators), configs.ctypes.data, samples, ctypes.byref(done))
    return done.value


def _info(handle: ctypes.c_void_p) -> ModelInfo:
    raw = driver.ModelInfo()
    driver.check(driver.library().neutronModelGetInfo(handle, ctypes.byref(raw)), handle)
    v = raw.converterVersion
    return ModelInfo(
        target=raw.target.decode("ascii"), format_version=raw.formatVersion,
        converter_version=(v >> 16, v >> 8 & 255, v & 255), scratch_bytes=raw.scratchBytes,
        prefetch_bytes=raw.prefetchBytes, profile_bytes=raw.profileBytes, debug_bytes=raw.debugBytes,
        tcm_bytes=raw.tcmBytes, state_bytes=raw.stateBytes, calls=raw.calls, profiling=raw.profiling,
    )  # fmt: skip


def _tensors(handle: ctypes.c_void_p) -> tuple[TensorInfo, ...]:
    raw_info, found = driver.ModelInfo(), []
    driver.check(driver.library().neutronModelGetInfo(handle, ctypes.byref(raw_info)), handle)
    for row in range(raw_info.inputs + raw_info.outputs):
        raw = driver.TensorInfo()
        driver.check(driver.library().neutronModelGetTensor(handle, row, ctypes.byref(raw)), handle)
        found.append(
            TensorInfo(
                is_output=bool(raw.isOutput), index=raw.index, dtype=ElementType(raw.dtype),
                shape=tuple(raw.dims[: raw.rank]), bytes=raw.bytes, scale=raw.scale, zero_point=raw.zeroPoint,
            )
        )  # fmt: skip
    return tuple(found)


def errors() -> list[tuple[int, str, str]]:
    """Every error word of the driver with its name and sentence, for the documentation."""
    return driver.errors()
