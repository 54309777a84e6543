"""Quantize float LiteRT models with LiteRT's own quantizer (the package `ai-edge-quantizer`).

It runs in a process of its own: LiteRT computes the calibration, and a file that makes it crash must not end ours.

Example:
    >>> made = quantize_float(Path("float.tflite").read_bytes(), samples, source="float.tflite")
    >>> made.model, worst_sqnr(made.outputs)
"""

from __future__ import annotations

import math
import re
import socket
import subprocess
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron import environment
from openneutron.errors import FormatError, OpenNeutronError, OptionError, RuntimeFailure
from openneutron.extras import missing_extra
from openneutron.litert.graph import DType, Model, Signature, Tensor
from openneutron.litert.passes.align_constants import align_constants
from openneutron.litert.passes.drop_tensors import drop_tensors
from openneutron.litert.passes.fold_constants import compute_constants
from openneutron.litert.passes.fuse_activations import fuse_activations
from openneutron.litert.passes.standard_operators import use_standard_operators
from openneutron.litert.passes.widen_halves import widen_halves
from openneutron.litert.passes.widen_integers import widen_integers
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.quantize_litert.find_noise import Noise, QuantizedTensor
from openneutron.quantize_litert.methods import BALANCES, Methods
from openneutron.report.model import OutputAccuracy
from openneutron.run import wire
from openneutron.run.given import bind_inputs
from openneutron.run.patience import patience
from openneutron.sandbox.process import kill, start

Array = npt.NDArray[Any]
SIGNATURE = "serving_default"  # the quantizer reads and calibrates models by their signatures
_WORKER = "openneutron.quantize_litert.worker"
_PACKAGE = "ai_edge_quantizer"
NO_METHODS = Methods()
_TRIALS = len(BALANCES) + 4  # of a search for methods, and what they share
_FLOW = ("IF", "WHILE", "CALL_ONCE")
_CUSTOM = re.compile(r"unresolved custom op: (\w+)")
_REFUSED = "failed to prepare"
_START_SECONDS = 60  # a loaded machine starts Python in seconds


@dataclass(frozen=True)
class QuantizedModel:
    """A quantized model, how close each output is to the float model's on samples, and who made it.

    `methods` are those it was made with, found by trying `tried`.
    """

    model: bytes
    outputs: tuple[OutputAccuracy, ...]
    made_by: str
    methods: Methods = NO_METHODS
    tried: int = 0


def is_float(model: Model) -> bool:
    """Return whether a model computes in float32: at most constants are quantized.

    Example:
        >>> is_float(read_model(data))
    """
    tensors = [tensor for graph in model.graphs for tensor in graph.tensors]
    return any(tensor.dtype is DType.FLOAT32 for tensor in tensors) and not any(
        tensor.quantization is not None and tensor.dtype in (DType.INT8, DType.INT16, DType.UINT8)
        for tensor in tensors
        if not tensor.is_constant
    )


def quantize_float(
    data: bytes, samples: Iterable[Any], *, source: str = "<bytes>", activations: str = "int8"
) -> QuantizedModel:
    """Quantize a float model after calibrating it on samples: arrays, tuples of arrays, or mappings by input name.

    Weights get a scale for each output channel; operators that have no integer kernel stay in float.
    """
    with FloatQuantizer(data, samples, source=source) as quantizer:
        return quantizer.quantize(activations)


class FloatQuantizer:
    """Quantizes one float model in several ways, in a process of its own that runs the samples once.

    Example:
        >>> with FloatQuantizer(data, samples) as quantizer:
        ...     plain, wide = quantizer.quantize(), quantizer.quantize(wide=["conv"])
    """

    def __init__(self, data: bytes, samples: Iterable[Any], *, source: str = "<bytes>") -> None:
        model = read_model(data, source=source)
        if not is_float(model):
            raise OptionError("the model is quantized already", where=source, hint="leave calibration out")
        main = model.main
        inputs = [main.tensors[at] for at in main.inputs]
        found = samples_of(samples, inputs, source=source)
        if not found:
            raise OptionError("calibration is empty", where=source, hint="give inputs that look like real ones")
        to_plain_float(model)
        _name(model)
        self.count = len(found)
        self._open_shapes = "".join(
            f"give input '{one.name}' a fixed shape instead of {list(one.shape_signature)}, "
            for one in inputs
            if one.shape_signature is not None and -1 in one.shape_signature
        )
        self._flow = ", ".join(sorted({op.code for op in main.operators if op.code in _FLOW}))
        self._source, self._patience = source, patience(model)
        self._folder = tempfile.TemporaryDirectory(prefix="openneutron-")
        self._log = (Path(self._folder.name) / "log").open("w+b")
        self._connection, theirs = socket.socketpair()
        with theirs:
            self._process = start(
                _WORKER, str(theirs.fileno()), self._folder.name, stdout=self._log, stderr=self._log,
                more={"TMPDIR": self._folder.name, "OPENBLAS_NUM_THREADS": "1"}, pass_fds=[theirs.fileno()],
            )  # fmt: skip
        written = write_model(model)
        described, payload = wire.pack([np.stack(rows) for rows in zip(*found, strict=True)])
        try:
            self._ask({"model": len(written), "samples": described}, written + payload, runs=len(found) + 1)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> FloatQuantizer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        kill(self._process)
        self._connection.close()
        self._log.close()
        self._folder.cleanup()

    def quantize(
        self,
        activations: str = "int8",
        *,
        wide: Sequence[str] = (),
        methods: Methods = NO_METHODS,
        compare: bool = True,
    ) -> QuantizedModel:
        """Quantize with these activations; operators whose outputs are named in `wide` get 16 bits where they have kernels."""
        request = {"do": "quantize", "activations": activations, "wide": list(wide), "methods": asdict(methods)}
        return self._made({**request, "compare": compare}, runs=1 + compare)

    def search(self, goal: float) -> QuantizedModel:
        """Quantize with the methods that cost no cycles and come nearest to a goal in decibels."""
        request = {"do": "search", "activations": "int8", "wide": [], "methods": asdict(NO_METHODS), "compare": True}
        return self._made({**request, "goal": goal}, runs=self.count + _TRIALS)

    def noise(
        self, methods: Methods, parts: Sequence[tuple[int, int, int, int]]
    ) -> tuple[list[QuantizedTensor], Noise]:
        """Measure the noise that each quantized tensor alone adds to each output and to parts of them."""
        answer, _ = self._ask(
            {"do": "noise", "methods": asdict(methods), "parts": list(parts)}, runs=self.count + _TRIALS
        )
        tensors = [QuantizedTensor([], set(one), set(other), size) for one, other, size in answer["tensors"]]
        floor = np.array(answer["floor"])
        return tensors, Noise(np.array(answer["alone"]).reshape(len(tensors), len(floor)), floor)

    def _made(self, request: dict[str, Any], runs: int) -> QuantizedModel:
        answer, model = self._ask(request, runs=runs)
        outputs = tuple(OutputAccuracy(**one) for one in answer["outputs"])
        return QuantizedModel(model, outputs, answer["made_by"], Methods.of(answer["methods"]), answer["tried"])

    def _ask(self, request: dict[str, Any], payload: bytes = b"", *, runs: int) -> tuple[dict[str, Any], bytes]:
        """Send a request and wait for the answer, with the time limit of so many runs of all samples in LiteRT."""
        seconds = self._patience * runs
        until = time.monotonic() + seconds if seconds else math.inf
        try:
            wire.send(self._connection, request, payload, until=until)
            answer = wire.receive(self._connection, until=until)
        except TimeoutError:
            hint = f"{environment.TIMEOUT} allows more for each sample, 0 any number"
            raise RuntimeFailure(f"calibrating took more than {seconds} seconds and was stopped", hint=hint) from None
        except (OSError, wire.Garbled):
            answer = None
        if answer is None:
            raise self._failure()
        return answer

    def _failure(self) -> OpenNeutronError:
        """Say why the process ended: a missing package, a crash, or the quantizer's message."""
        try:
            status = self._process.wait(_START_SECONDS)
        except subprocess.TimeoutExpired:
            kill(self._process)
            status = self._process.returncode
        if status < 0:
            return RuntimeFailure(
                f"LiteRT crashed while it calibrated the model (signal {-status})", where=self._source,
                hint="quantize the model where it was made, and compile that file",
            )  # fmt: skip
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").strip().splitlines()
        last = (lines or ["no message"])[-1]
        found = missing_extra(_PACKAGE, "quantizing a float LiteRT model")
        if found is not None and f"No module named '{_PACKAGE}'" in last:
            return found
        hint = "quantize the model where it was made"
        custom = _CUSTOM.search(last)
        if custom is not None:
            said = f"LiteRT has no operator {custom[1]}, so it cannot calibrate the model"
            return RuntimeFailure(said, where=self._source, hint=f"cut the model in front of it, or {hint}")
        if _REFUSED in last:
            said = f"LiteRT refuses the float model: {last.partition(': ')[2].rstrip('.')}"
            return RuntimeFailure(said, where=self._source, hint=f"{self._open_shapes}or {hint}")
        if self._flow:
            said = f"LiteRT's quantizer failed, and the model has control flow ({self._flow}), which it does not take"
            return RuntimeFailure(said, where=self._source, hint=hint)
        return RuntimeFailure(f"LiteRT's quantizer failed: {last}", where=self._source, hint=hint)


def to_plain_float(model: Model) -> None:
    """Rewrite a float model to what the quantizer knows: float32 weights where operators read them, standard operators.

    Shape arithmetic is computed, and clamps become part of the operators before them.

    Example:
        >>> to_plain_float(model)
    """
    changes = (
        compute_constants, widen_halves, widen_integers, use_standard_operators, fuse_activations, align_constants,
    )  # fmt: skip
    if sum(change(graph) for graph in model.graphs for change in changes):
        drop_tensors(model)


def stored_samples(path: Path) -> list[Any]:
    """Read the arrays of a .npz or .npy file as one batch, by input names or else by position."""
    try:
        stored = np.load(path, allow_pickle=False)
        arrays = {name: stored[name] for name in stored.files} if path.suffix == ".npz" else {"arr_0": stored}
    except FileNotFoundError:
        raise OptionError("there is no such file", where=str(path)) from None
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise FormatError(f"the arrays cannot be read ({error})", where=str(path)) from error
    by_position = len(arrays) == 1 or all(name.startswith("arr_") for name in arrays)
    return [tuple(arrays.values()) if by_position else arrays]


def samples_of(given: Iterable[Any], tensors: Sequence[Tensor], *, source: str) -> list[list[Array]]:
    """Convert calibration data to samples of the model's inputs; batches are split, labels are left out."""
    if not isinstance(given, Iterable) or isinstance(given, (Mapping, str, bytes)):
        raise OptionError(
            f"calibration is a {type(given).__name__}", where=source, hint="give a list of samples: arrays or tuples"
        )
    is_array = hasattr(given, "shape")
    found: list[list[Array]] = []
    for at, one in enumerate([given] if is_array else given):
        where = f"{source}, calibration[{at}]"
        if isinstance(one, Mapping):
            parts = [one[tensor.name] for tensor in tensors if tensor.name in one]
        else:
            parts = list(one)[: len(tensors)] if isinstance(one, (tuple, list)) else [one]
        rows = [_rows(part, tensor) for part, tensor in zip(parts, tensors, strict=False)]
        counts = {len(row) for row in rows}
        if len(parts) != len(tensors) or len(counts) != 1:
            bind_inputs(tensors, parts, source=where)  # says what does not fit
        for row, sample in enumerate(zip(*rows, strict=True)):
            found.append(bind_inputs(tensors, sample, source=where))
            _check_finite(tensors, found[-1], f"{where}, row {row}" if len(rows[0]) > 1 else where)
    return found


def _check_finite(tensors: Sequence[Tensor], sample: Sequence[Array], where: str) -> None:
    """Raise for a sample whose range is no number; minus infinity is a mask."""
    for tensor, value in zip(tensors, sample, strict=True):
        if value.dtype.kind == "f" and not (value < np.inf).all():
            what = "NaN" if np.isnan(value).any() else "infinity"
            raise OptionError(
                f"input '{tensor.name}' has {what}, which no range can hold", where=where, hint="leave the sample out"
            )


def _rows(part: Any, tensor: Tensor) -> list[Any]:
    """Split one input of a batch along its first dimension; a single sample stays whole."""
    array = np.asarray(part.detach().cpu() if hasattr(part, "detach") else part)
    shape = tensor.shape
    if array.shape == shape[1:] and shape[:1] == (1,):
        return [array[None]]
    if array.ndim == len(shape) and array.shape[1:] == shape[1:] and shape and not array.size:
        return []
    if array.ndim == len(shape) and array.shape[1:] == shape[1:] and shape and array.shape[0] % shape[0] == 0:
        return np.split(array, array.shape[0] // shape[0])
    return [array]


def _name(model: Model) -> None:
    """Give every tensor a unique name (the quantizer's key for ranges) and the model one signature."""
    seen: set[str] = set()
    for number, graph in enumerate(model.graphs):
        for at, tensor in enumerate(graph.tensors):
            if not tensor.name or tensor.name in seen:
                tensor.name = f"{tensor.name or 'tensor'}_{number}_{at}"
            seen.add(tensor.name)
    main = model.main
    inputs, outputs = (
        tuple((f"{side}_{at}", index) for at, index in enumerate(indices))
        for side, indices in (("input", main.inputs), ("output", main.outputs))
    )
    model.signatures = [Signature(SIGNATURE, 0, inputs, outputs)]
