"""4-bit weights of ONNX models: MatMulNBits as onnxruntime computes it, INT4 in DequantizeLinear, stored in 4 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper

import openneutron as on
from openneutron.certify.program import prove_program
from openneutron.errors import OpenNeutronError
from openneutron.onnx import load
from openneutron.onnx.low_bits import has_low_bits, low_bit_layers
from openneutron.onnx.reference import run_reference
from tests.onnx.models import model, node

K, N = 128, 64
RNG = np.random.default_rng(0)
SAMPLES = [RNG.normal(size=(1, K)).astype(np.float32) for _ in range(16)]


def pack(numbers: np.ndarray, bits: int = 4) -> np.ndarray:
    """Rows of small numbers in bytes, the first in the lowest bits."""
    parts = numbers.reshape(len(numbers), -1, 8 // bits).astype(np.uint8)
    return np.bitwise_or.reduce(parts << (np.arange(8 // bits) * bits).astype(np.uint8), axis=-1).astype(np.uint8)


def nbits(block: int = 32, *, zeros: str = "", bias: bool = False, bits: int = 4, **changed: Any) -> Any:
    """A model of one MatMulNBits."""
    rng = np.random.default_rng(1)
    blocks = K // block
    stored = {
        "b": pack(rng.integers(0, 1 << bits, (N * blocks, block)), bits).reshape(N, blocks, -1),
        "s": rng.uniform(0.005, 0.02, N * blocks).astype(np.float32),
    }
    if zeros == "packed":
        stored["z"] = pack(rng.integers(5, 11, (N, blocks + blocks % 2))).reshape(-1)
    if zeros == "float":
        stored["z"] = rng.integers(5, 11, N * blocks).astype(np.float32)
    if bias:
        stored["bias"] = rng.normal(size=N).astype(np.float32)
    names = ["x", "b", "s", "z" if zeros else "", "", "bias" if bias else ""]
    while not names[-1]:
        names.pop()
    more = {"K": K, "N": N, "bits": bits, "block_size": block, "accuracy_level": 0, **changed}
    imports = [helper.make_opsetid("com.microsoft", 1)]
    made = node("MatMulNBits", names, ["y"], "/layer/MatMul_Q4", "com.microsoft", **more)
    return model([made], {"x": (1, K)}, ["y"], stored, imports=imports)


CASES: dict[str, dict[str, Any]] = {
    "groups of 32": {}, "groups of 16, zero points": {"block": 16, "zeros": "packed"},
    "groups of 64, bias": {"block": 64, "bias": True}, "groups of 128, float zero points": {"block": 128, "zeros": "float"},
    "8 bits": {"bits": 8}, "one group of zero points": {"block": 128, "zeros": "packed"},
}  # fmt: skip


@pytest.mark.parametrize("given", CASES.values(), ids=CASES)
def test_weights_are_those_of_onnxruntime(given: dict[str, Any]) -> None:
    data = nbits(**given).SerializeToString()
    (wanted,) = run_reference(data, [SAMPLES[0]]).values()
    got = load(data).module(torch.from_numpy(SAMPLES[0]))[0].detach().numpy()
    assert np.abs(got - wanted).max() < 1e-4 * np.abs(wanted).max()


@pytest.mark.parametrize("block", [32, 64, 128])
def test_programs_keep_the_quotients_in_4_bits_and_are_proved(block: int) -> None:
    data = nbits(block, zeros="packed").SerializeToString()
    program = on.compile(data, calibration=[(one,) for one in SAMPLES], activations="int16", dump_intermediates=True)
    assert 8 * program.report.totals.weight_bytes < 4.6 * K * N + 8 * 20 * N  # and bias, multiplier of each output
    assert program.report.output_sqnr is not None and program.report.output_sqnr > 25
    assert any("1 layers have weights of 4 bits" in one for one in program.report.notes)
    assert prove_program(bytes(program.data), lambda name: bytes(program.intermediates[name]))  # type: ignore[arg-type]


def qdq(kind: int, block: int, axis: int) -> Any:
    """Quantized activations, and a product with constants of 4 bits: a scale per column, or per block of rows."""
    rng = np.random.default_rng(2)
    low = 0 if kind == TensorProto.UINT4 else -8
    shape = (K, N) if axis == 0 or not block else (N, K)
    scales = np.array(shape)
    if block:
        scales[axis] //= block
    weights = helper.make_tensor("w", kind, shape, rng.integers(low, low + 16, shape).reshape(-1).tolist())
    size = tuple(scales) if block else (N,)
    blocks = {"axis": axis, "block_size": block} if block else {"axis": 1}
    zeros = helper.make_tensor("wz", kind, size, (rng.integers(-2, 3, size) + (8 + low)).reshape(-1).tolist())
    stored = {
        "ws": rng.uniform(0.01, 0.02, size).astype(np.float32),
        "xs": np.float32(0.03), "ys": np.float32(0.2), "zero": np.int8(0),
    }  # fmt: skip
    nodes = [
        node("QuantizeLinear", ["x", "xs", "zero"], ["xq"]), node("DequantizeLinear", ["xq", "xs", "zero"], ["xr"]),
        node("DequantizeLinear", ["w", "ws", "wz"], ["wr"], **blocks),
        node("MatMul", ["xr", "wr"], ["m"]) if shape[0] == K else node("Gemm", ["xr", "wr"], ["m"], transB=1),
        node("QuantizeLinear", ["m", "ys", "zero"], ["yq"]), node("DequantizeLinear", ["yq", "ys", "zero"], ["y"]),
    ]  # fmt: skip
    made = model(nodes, {"x": (1, K)}, ["y"], stored)
    made.graph.initializer.extend([weights, zeros])
    return made


@pytest.mark.parametrize(
    ("kind", "block", "axis"),
    [(TensorProto.INT4, 0, 1), (TensorProto.UINT4, 0, 1), (TensorProto.INT4, 32, 0), (TensorProto.UINT4, 64, 1)],
    ids=["INT4 per channel", "UINT4 per channel", "INT4 in blocks of 32", "UINT4 in blocks of 64"],
)
def test_quantized_models_run_on_the_npu(kind: int, block: int, axis: int) -> None:
    data = qdq(kind, block, axis).SerializeToString()
    program = on.compile(data)
    assert program.report.totals.operators_total == program.report.totals.operators_converted
    assert 8 * program.report.totals.weight_bytes < 5 * K * N + 8 * 20 * N
    steps = []
    for sample in SAMPLES:
        (wanted,) = run_reference(data, [sample]).values()
        steps.append(np.abs(np.asarray(program.run(sample)[0]) - wanted).max() / 0.2)
    # A group's scale is a multiple of its channel's, which may differ from the model's by a part in 30.
    assert max(steps) <= (1.01 if not block else 3)


def test_layers_are_found_by_their_weights() -> None:
    assert has_low_bits(nbits().graph) and load(nbits().SerializeToString()).module.low_bit_layers == {
        "/layer/MatMul_Q4": 32
    }
    assert load(nbits(bits=8).SerializeToString()).module.low_bit_layers == {}
    assert low_bit_layers([]) == {}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"bits": 4, "K": 96}, "K is 96"),
        ({"N": 32}, "input `b` has 4096 numbers in place of 2048"),
        ({"block_size": 0}, "block_size 0"),
    ],
    ids=str,
)
def test_damaged_weights_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(OpenNeutronError, match=message):
        load(nbits(**changed).SerializeToString())
