"""Reference results of whole models, computed by onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from openneutron.errors import ConverterError, OptionError
from openneutron.extras import need


def run_reference(path: str, inputs: Sequence[Any], fixed: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Return the outputs of a model by name, by onnxruntime's CPU provider; `fixed` holds inputs that became constants.

    Example:
        >>> run_reference("model.onnx", [image])
        {'logits': array(...)}
    """
    runtime = need("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        everything = session.get_inputs()
        wanted = [one for one in everything if one.name not in (fixed or {})]
        if len(wanted) != len(inputs):
            raise OptionError(f"it takes {len(wanted)} inputs, there are {len(inputs)}", where=path)
        given = {one.name: np.asarray(array).astype(_type(one.type)) for one, array in zip(wanted, inputs, strict=True)}
        given |= {
            one.name: np.array((fixed or {})[one.name], _type(one.type)) for one in everything if one not in wanted
        }
        return dict(zip((one.name for one in session.get_outputs()), session.run(None, given), strict=True))
    except OptionError:
        raise
    except Exception as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ConverterError(f"onnxruntime cannot run it: {first[:200]}", where=path) from error


def _type(text: str) -> Any:
    """Return numpy's type for one of onnxruntime's, such as "tensor(float)"."""
    names = {"float": "float32", "double": "float64", "float16": "float16"}
    inner = text.removeprefix("tensor(").removesuffix(")")
    return np.dtype(names.get(inner, inner))


def output_scales(model: Any) -> list[float]:
    """Return the scale of each output of an exported program that ends in a dequantize, 0 for the others."""
    graph = getattr(model, "graph", None)
    if graph is None:
        return []
    outputs = next((node for node in graph.nodes if node.op == "output"), None)
    found = []
    for node in outputs.args[0] if outputs is not None else ():
        is_dequantize = "dequantize_per_tensor" in str(getattr(node, "target", ""))
        found.append(float(node.args[1]) if is_dequantize else 0.0)
    return found
