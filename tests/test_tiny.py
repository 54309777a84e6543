"""The whole stack in seconds: a LiteRT file and a PyTorch module, each from source to the last bit of its output."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import openneutron as on
from openneutron.cli.inputs.blocks import blocks_of_file
from openneutron.machine.simulator import Simulator
from openneutron.microcode.decode import decode
from openneutron.microcode.disassemble import disassemble
from openneutron.microcode.encode import encode
from openneutron.run.runner import LiteRtRunner, random_inputs
from tests import tiny


@pytest.mark.parametrize("target", ["imx95", "imxrt700", "mcxn94x"])
def test_a_litert_file_from_bytes_to_cycles(target: str, tmp_path: Path) -> None:
    source = tiny.convnet()
    program = on.compile(source, target=target)
    assert all(verdict.delegated for verdict in program.verdicts)
    program.save(tmp_path / "out.tflite")

    (blocks,) = blocks_of_file((tmp_path / "out.tflite").read_bytes(), "out.tflite")
    decoded = decode(blocks.microcode, blocks.weights, blocks.kernels)
    assert encode(decoded) == blocks.microcode
    assert "conv2d" in disassemble(decoded)

    reference = LiteRtRunner(source)
    with Simulator(blocks.microcode, blocks.weights, blocks.kernels, poison=True) as simulator:
        for seed in range(20):
            inputs = random_inputs(reference.inputs, seed=seed)
            (expected,) = reference.run(inputs).outputs.values()
            (ours,) = simulator.run(inputs)
            assert np.array_equal(ours, expected)
            assert np.array_equal(program.run(*inputs)[0], expected)
        assert simulator.cycles == program.report.totals.cycles


def test_a_pytorch_module_from_weights_to_the_runtime(tmp_path: Path) -> None:
    import torch

    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(128, 5),
        torch.nn.Softmax(dim=1),
    )
    images = torch.rand(16, 1, 3, 8, 8) * 2 - 1
    program = on.compile(
        module, (images[0],), calibration=[(image,) for image in images], target="imxrt700", dump_intermediates=True
    )
    program.save(tmp_path / "tiny.pte")
    assert (tmp_path / "tiny.pte").read_bytes() == program.pte
    left = {verdict.operator for verdict in program.verdicts if not verdict.delegated}
    assert all("quantize_per_tensor" in name for name in left)

    source = program.intermediates["partition_0.tflite"]
    assert isinstance(source, bytes)
    reference = LiteRtRunner(source)
    quantization = reference.outputs[0].quantization
    assert quantization is not None
    scale, zero_point = quantization.scalar
    quantize = torch.ops.quantized_decomposed.quantize_per_tensor.default
    arguments = next(node.args[1:] for node in program.quantized.graph.nodes if node.target is quantize)
    for image in images:
        (ours,) = program.run(image)
        entering = quantize(image, *arguments).permute(0, 2, 3, 1).contiguous().numpy()
        (expected,) = reference.run([entering]).outputs.values()
        assert np.array_equal(ours.numpy(), (expected.astype(np.float32) - zero_point) * np.float32(scale))
        assert torch.allclose(ours, module(image), atol=0.05)
