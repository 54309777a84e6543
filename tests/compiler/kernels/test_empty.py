"""Empty tensors: no kernel takes one, and what stands beside them runs all the same."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from openneutron.compiler import kernels
from openneutron.compiler.signature import OpSignature, of_operator
from openneutron.convert import convert
from openneutron.litert.graph import DType
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.machine import targets
from openneutron.options import Options
from openneutron.run.runner import LiteRtRunner
from tests.fuzz.seeds import seeds
from tests.golden import TARGETS, ModelMaker, reference


def signatures() -> dict[str, OpSignature]:
    """One accepted signature of each operator that a model of the fuzzer has."""
    target = targets.load("imxrt700")
    found: dict[str, OpSignature] = {}
    for model in seeds().values():
        graph = read_model(model).main
        for op in graph.operators:
            signature = of_operator(graph, op)
            if kernels.check(signature, target):
                found.setdefault(op.code, signature)
    return found


SIGNATURES = signatures()


def test_most_operators_are_here() -> None:
    assert len(SIGNATURES) > 0.8 * len(kernels.rules())


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("code", SIGNATURES)
def test_an_empty_dimension_is_refused_with_its_tensor(code: str, target: str) -> None:
    signature, chip = SIGNATURES[code], targets.load(target)
    for side in ("inputs", "outputs"):
        tensors = getattr(signature, side)
        for at, tensor in enumerate(tensors):
            if tensor is None or (tensor.constant and tensor.dtype is DType.INT32):
                continue  # shapes, axes and biases have rules of their own
            for dimension in range(len(tensor.shape)):
                shape = (*tensor.shape[:dimension], 0, *tensor.shape[dimension + 1 :])
                changed = (*tensors[:at], tensor._replace(shape=shape), *tensors[at + 1 :])
                verdict = kernels.check(dataclasses.replace(signature, **{side: changed}), chip)
                assert not verdict, f"{side} {at} of shape {list(shape)}"
                assert str(list(shape)) in str(verdict.reason)


def test_what_stands_beside_an_empty_tensor_is_compiled_and_runs() -> None:
    maker = ModelMaker(np.random.default_rng(0))
    full, empty = maker.input((1, 4), DType.INT8, 0.1, 0), maker.input((0, 4), DType.INT8, 0.1, 0)
    maker.op("ADD", [full, full], maker.output((1, 4), DType.INT8, 0.2, 0))
    maker.op("ADD", [empty, empty], maker.output((0, 4), DType.INT8, 0.2, 0))
    model = write_model(maker.model())
    result = convert(model, Options())
    assert [op.converted for op in result.report.operators] == [True, False]
    got = LiteRtRunner(result.model).run(maker.data).outputs.values()
    for mine, theirs in zip(got, reference(model, maker.data), strict=True):
        assert mine.shape == theirs.shape and np.array_equal(mine, theirs)
