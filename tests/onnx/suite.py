"""ONNX's own operator tests, run by the importer and by onnxruntime.

python tests/onnx/suite.py     rewrites backend_passed.txt and backend_misses.txt, and prints the counts
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PASSED = HERE / "backend_passed.txt"
MISSES = HERE / "backend_misses.txt"
# What the importer is not for, by what the case's failure or operator says; the rest of the suite is in scope.
OUT_OF_SCOPE = {
    "holds text": "it computes with text",
    "STRING": "it computes with text",
    "ai.onnx.ml": "classical machine learning, an operator set of its own",
    "TfIdfVectorizer": "counts words",
    "opset 1;": "written for opset 1; the importer reads opsets 7 and up",
}
# Why cases in scope fail that onnxruntime passes.
REASONS = {
    "Scan before opset 9": "Scan of opset 8 has a batch dimension of its own; no exporter writes it any more",
    "DeformConv": "no runtime on the chip has a kernel for deformable convolution",
    "test_attention_4d_causal_fp16": "sums in float16 in another order: 2 of 192 numbers are off by one step of float16",
    "test_dynamicquantizelinear_expanded": "quantize multiplies by the inverse scale, as PyTorch's: a tie rounds differently",
}


def cases() -> dict[str, Any]:
    """Every operator test by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        return {case.name: case for case in load_model_tests(kind="node")}


def fails(case: Any, run: Any) -> str:
    """Why a case fails, "" when it passes; `run` computes outputs from a model and inputs."""
    from onnx.backend.test.runner import Runner

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for inputs, expected in case.data_sets:
                Runner.assert_similar_outputs(expected, run(case.model, inputs), case.rtol, case.atol)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return ""


def ours(model: Any, inputs: Any) -> Any:
    """The outputs by the importer in eager torch."""
    from openneutron.onnx import backend

    return backend.run_model(model, inputs)


def theirs(model: Any, inputs: Any) -> Any:
    """The outputs by onnxruntime's CPU provider."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs, strict=False)))


def listed(path: Path) -> list[str]:
    """The names in a list, without comments and reasons."""
    lines = [line.split("#")[0].strip() for line in path.read_text().splitlines()]
    return [line.split(":")[0] for line in lines if line]


def main() -> int:
    found = cases()
    passed, missed, outside, reached = [], [], 0, 0
    for name, case in found.items():
        why = fails(case, ours)
        if not why:
            passed.append(name)
        if fails(case, theirs):
            continue
        scope = next((reason for text, reason in OUT_OF_SCOPE.items() if text in why), "")
        if scope:
            outside += 1
            missed.append(f"{name}: not in scope: {scope}")
            continue
        reached += not why
        if why:
            reason = next((reason for text, reason in REASONS.items() if text in why or name.startswith(text)), why)
            missed.append(f"{name}: {reason}")
    in_scope = reached + len(missed) - outside
    head = f"of {in_scope} operator tests in scope that onnxruntime passes, the importer passes {reached}"
    note = "# ONNX's operator tests that the importer passes; `python tests/onnx/suite.py` writes this.\n"
    PASSED.write_text(note + "\n".join(passed) + "\n")
    note = f"# Operator tests that onnxruntime passes and the importer does not: {head}.\n"
    MISSES.write_text(note + "\n".join(missed) + "\n")
    print(f"{len(found)} tests; {len(passed)} pass; {head} ({100 * reached / in_scope:.1f} %)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
