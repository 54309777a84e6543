"""One network, measured: compiled with each set of options, run, compared with float.

Example:
    >>> measure(network, VARIANTS)[0]["parts"]
    [{'name': 'output 0', 'sqnr': 41.3}]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tests.accuracy.figures import Outputs, parts
from tests.accuracy.networks import ZOO, Network
from tests.accuracy.packages import FOLDER

WARNING_LENGTH = 400  # of each warning that a row keeps


@dataclass(frozen=True)
class Variant:
    """A set of options to compile with, for models that are quantized here and for float LiteRT files."""

    name: str
    torch: dict[str, Any]
    litert: dict[str, Any]

    def options(self, kind: str) -> dict[str, Any]:
        """Those for this kind of model, as far as this version has them."""
        from openneutron.options import SCHEMA

        given = self.litert if kind == "tflite" else self.torch
        return {name: value for name, value in given.items() if name in SCHEMA}


# "plain" is what a compile without options was before it looked for quality: one weight scale per tensor, no methods.
VARIANTS = (
    Variant("plain", {"per_channel": False, "quality": "plain"}, {"quality": "plain"}),
    Variant("default", {}, {}),
)


def measure(network: Network, variants: Sequence[Variant] = VARIANTS) -> list[dict[str, Any]]:
    """A row for each variant. One whose options are the defaults anyway takes the figures of the default."""
    from openneutron.options import SCHEMA

    source, samples, labels, wanted = _prepare(network)
    _warm_up(network.kind)
    rows: list[dict[str, Any]] = []
    done: dict[str, dict[str, Any]] = {}
    for variant in variants:
        given = variant.options(network.kind)
        changed = {name: value for name, value in given.items() if SCHEMA[name].default != value}
        key = repr(sorted(changed.items()))
        if key not in done:
            done[key] = _compiled(network, source, changed, samples, labels, wanted)
        rows.append({"network": network.name, "variant": variant.name, "options": changed, **done[key]})
    return rows


def _prepare(network: Network) -> tuple[Any, dict[str, list[tuple[Any, ...]]], list[Any], list[Outputs]]:
    samples: dict[str, list[tuple[Any, ...]]] = {}
    labels: list[Any] = []
    for seed, (role, count) in enumerate((("calibration", network.calibration), ("tested", network.tested))):
        rng = np.random.default_rng(seed)
        made = [network.sample(rng, role) for _ in range(count)]  # type: ignore[arg-type]
        if network.metric is not None and network.metric.labelled:
            labels = [one[-1] for one in made]
            made = [one[:-1] for one in made]
        samples[role] = made
    source: Any = network.path if network.package != ZOO and network.module is None else _module(network)
    if network.kind == "onnx" and _has_other_sizes(source, network.sizes):
        source = _with_sizes(source, network.sizes)  # as a user changes a shape that a file has fixed
    reference = _reference(network, source)
    return source, samples, labels, [reference(one) for one in samples["tested"]]


def _module(network: Network) -> Any:
    from openneutron import zoo

    return zoo.load(network.file).model.eval() if network.module is None else network.module(network.path)


def _reference(network: Network, source: Any) -> Callable[[tuple[Any, ...]], Outputs]:
    """What computes a sample in float: torch, onnxruntime or LiteRT."""
    if network.kind == "torch":
        import torch

        def run_torch(inputs: tuple[Any, ...]) -> Outputs:
            with torch.no_grad():
                found = source(*map(torch.from_numpy, inputs))
            return [one.numpy() for one in (found if isinstance(found, (tuple, list)) else [found])]

        return run_torch
    if network.kind == "onnx":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 4, 1
        session = onnxruntime.InferenceSession(
            source if isinstance(source, bytes) else str(source), options, providers=["CPUExecutionProvider"]
        )
        fixed = {name: np.array(value, np.int64) for name, value in network.sizes.items() if isinstance(value, int)}
        names = [one.name for one in session.get_inputs() if one.name not in fixed]
        return lambda inputs: session.run(None, {**dict(zip(names, inputs, strict=True)), **fixed})
    from ai_edge_litert.interpreter import Interpreter

    from openneutron.litert import read_model, write_model
    from openneutron.quantize_litert.quantize import to_plain_float

    model = read_model(source.read_bytes(), source=source.name)
    to_plain_float(model)  # LiteRT knows no operators of MediaPipe's
    interpreter = Interpreter(model_content=write_model(model))
    interpreter.allocate_tensors()

    def run_litert(inputs: tuple[Any, ...]) -> Outputs:
        for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]

    return run_litert


def _has_other_sizes(path: Any, sizes: dict[str, Any]) -> bool:
    """Whether an ONNX file has fixed an input to another shape than the bench uses."""
    import onnx

    inputs = {one.name: one.type.tensor_type.shape.dim for one in onnx.load(path).graph.input}
    pairs = [
        (dimension, size)
        for name, shape in sizes.items()
        if isinstance(shape, tuple)
        for dimension, size in zip(inputs[name], shape, strict=True)
    ]
    return any(dimension.HasField("dim_value") and dimension.dim_value != size for dimension, size in pairs)


def _with_sizes(path: Any, sizes: dict[str, Any]) -> bytes:
    """An ONNX model that states these shapes of its inputs: onnxruntime refuses others than the file has."""
    import onnx

    model = onnx.load(path)
    for value in model.graph.input:
        if isinstance(sizes.get(value.name), tuple):
            for dimension, size in zip(value.type.tensor_type.shape.dim, sizes[value.name], strict=True):
                if dimension.HasField("dim_value"):  # one that is open stays so: inference knows less with it fixed
                    dimension.dim_value = size
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    stored: bytes = model.SerializeToString()
    return stored


def _warm_up(kind: str) -> None:
    """Compile something small, so that imports are not part of the first compile's time."""
    if kind == "tflite":
        return
    import torch

    import openneutron

    image = torch.rand(1, 3, 8, 8)
    openneutron.compile(torch.nn.Conv2d(3, 4, 3).eval(), (image,), calibration=[(image,)])


def _compiled(
    network: Network, source: Any, options: dict[str, Any], samples: dict[str, list[tuple[Any, ...]]], labels: list[Any],
    wanted: list[Outputs],
) -> dict[str, Any]:  # fmt: skip
    """What one compile came to: figures, or the error that refused the model."""
    import openneutron
    from openneutron.errors import OpenNeutronError

    more: dict[str, Any] = {"sizes": network.sizes} if network.sizes else {}
    calibration: Any = samples["calibration"]
    if network.kind != "tflite":
        import torch

        calibration = [tuple(torch.as_tensor(array) for array in one) for one in calibration]
    if network.kind == "torch":
        more["example_inputs"] = calibration[0]
    began = time.perf_counter()
    try:
        program = openneutron.compile(source, calibration=calibration, **more, **options)
        seconds = time.perf_counter() - began
        found = [_run(program, one) for one in samples["tested"]]
    except OpenNeutronError as error:
        told = f"{type(error).__name__}: {error}".replace(f"{FOLDER}/", "")
        return {"refused": told[:WARNING_LENGTH]}
    report = program.report
    own = [node for node in report.nodes if node.code != "border"]
    return {
        "parts": [asdict(one) for one in parts(wanted, found)],
        **_task(network, found, wanted, labels),
        "cycles": report.totals.cycles,
        "milliseconds": report.whole.milliseconds if report.whole.timed else report.totals.milliseconds,
        "nodes": len(own) or report.totals.operators_total,
        "delegated": sum(one.delegated for one in own) or report.totals.operators_converted,
        "seconds": round(seconds, 2),
        "searched": "looking for better choices" in report.seconds,
        "told_sqnr": report.output_sqnr,
        "warnings": [text[:WARNING_LENGTH] for text in report.warnings],
    }


def _task(network: Network, found: list[Outputs], wanted: list[Outputs], labels: list[Any]) -> dict[str, Any]:
    """The figure of the network's task, float's beside it: 1 where INT8 is compared with float itself."""
    metric = network.metric
    if metric is None:
        return {}
    float_figure = metric.mean(wanted, labels) if metric.labelled else 1.0
    figure = metric.mean(found, labels if metric.labelled else wanted)
    return {"metric": metric.name, "float": float_figure, "int8": figure, "allowed": metric.allowed}


def _run(program: Any, inputs: tuple[Any, ...]) -> list[Any]:
    """A sample's outputs as float arrays. A LiteRT file takes and gives integers with scales where it has them."""
    if program.kind != "tflite":
        return [one.numpy().copy() for one in program.run(*inputs)]
    from openneutron.litert.read import read_model

    main = read_model(program.data, source="<compiled>").main
    given = []
    for array, index in zip(inputs, main.inputs, strict=True):
        tensor = main.tensors[index]
        if tensor.quantization is not None and tensor.dtype.numpy.kind == "i":
            (scale, zero), limits = tensor.quantization.scalar, np.iinfo(tensor.dtype.numpy)
            array = np.clip(np.rint(array / scale) + zero, limits.min, limits.max).astype(tensor.dtype.numpy)
        given.append(array)
    found = []
    for array, index in zip(program.run(*given), main.outputs, strict=True):
        how = main.tensors[index].quantization
        whole = how is not None and np.issubdtype(array.dtype, np.integer)
        found.append((array.astype(np.float32) - how.scalar[1]) * how.scalar[0] if whole and how else np.array(array))
    return found
