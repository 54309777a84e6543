"""Scripts as users of ExecuTorch's own NXP backend write them: only the import lines are ours."""

from __future__ import annotations

from pathlib import Path

import executorch.kernels.quantized  # noqa: F401  (such scripts import it for quantize.out)
import pytest
import torch
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge, to_edge_transform_and_lower
from executorch.extension.export_util.utils import save_pte_program
from torch import nn
from torchao.quantization.pt2e import move_exported_model_to_eval, move_exported_model_to_train
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e

from openneutron.executorch import (
    CustomDelegationOptions,
    NeutronCompileSpecBuilder,
    NeutronPartitioner,
    NeutronQuantizer,
    NeutronTargetSpec,
    generate_neutron_compile_spec,
)
from openneutron.executorch.run.runtime import load_program
from openneutron.microcode.pte import read_plan


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.Linear(256, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.max_pool2d(torch.relu(self.norm(self.conv(x))), 2)
        return torch.softmax(self.head(nn.functional.hardswish(x).flatten(1)), 1)


@pytest.fixture
def samples() -> list[tuple[torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    return [(torch.rand(1, 8, 8, 8, generator=generator),) for _ in range(4)]


def quantized_of(samples: list[tuple[torch.Tensor]], quantizer: NeutronQuantizer) -> torch.fx.GraphModule:
    torch.manual_seed(0)
    prepared = prepare_pt2e(torch.export.export(Network().eval(), samples[0], strict=True).module(), quantizer)
    for sample in samples:
        prepared(*sample)
    converted: torch.fx.GraphModule = convert_pt2e(prepared)
    return converted


def assert_runs(pte: bytes, quantized: torch.fx.GraphModule, inputs: tuple[torch.Tensor]) -> None:
    plan = read_plan(pte, where="network")
    assert plan.delegates == {"NeutronBackend": 1}
    assert sum(plan.operators.values()) == 2  # quantize and dequantize at the border
    (scores,) = load_program(pte).run(*inputs)
    assert (scores - quantized(*inputs)).abs().max() <= 2 / 256  # of a softmax, whose scale is 1/256


def test_after_training_with_everything_said(samples: list[tuple[torch.Tensor]], tmp_path: Path) -> None:
    target = NeutronTargetSpec("imxrt700")
    quantized = quantized_of(samples, NeutronQuantizer(target))
    spec = generate_neutron_compile_spec(
        "imxrt700", operators_not_to_delegate=[], use_neutron_for_format_conversion=True, fetch_constants_to_sram=True,
        dump_kernel_selection_code=True, intermediates_dir=str(tmp_path),
    )  # fmt: skip
    partitioner = NeutronPartitioner(
        spec, target, CustomDelegationOptions(), quantized.state_dict(), preserve_ops=[torch.ops.aten.hardswish.default]
    )
    edge = to_edge_transform_and_lower(
        torch.export.export(quantized, samples[0], strict=True), partitioner=[partitioner],
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    )  # fmt: skip
    program = edge.to_executorch(config=ExecutorchBackendConfig(extract_delegate_segments=False))
    save_pte_program(program, "network", str(tmp_path))
    assert_runs((tmp_path / "network.pte").read_bytes(), quantized, samples[0])
    assert (tmp_path / "partition_0.tflite").is_file()


def test_in_two_steps(samples: list[tuple[torch.Tensor]]) -> None:
    """Scripts older than `to_edge_transform_and_lower`: real weights come with the state dict, nothing is preserved."""
    target = NeutronTargetSpec("imxrt700")
    quantized = quantized_of(samples, NeutronQuantizer(target))
    spec = NeutronCompileSpecBuilder().neutron_compile_spec("imxrt700").build()
    edge = to_edge(
        torch.export.export(quantized, samples[0]), compile_config=EdgeCompileConfig(_check_ir_validity=False)
    )
    partitioner = NeutronPartitioner(spec, target, post_quantization_state_dict=quantized.state_dict())
    pte = bytes(edge.to_backend(partitioner).to_executorch().buffer)
    (scores,) = load_program(pte).run(*samples[0])
    assert read_plan(pte, where="network").delegates["NeutronBackend"] >= 1
    assert (scores - quantized(*samples[0])).abs().max() <= 2 / 256


@pytest.mark.full  # a training of its own; recipes/test_qat.py trains in every run
def test_with_training(samples: list[tuple[torch.Tensor]]) -> None:
    torch.manual_seed(0)
    target = NeutronTargetSpec("imxrt700")
    module = torch.export.export(Network().train(), samples[0], strict=True).module()
    prepared = prepare_qat_pt2e(module, NeutronQuantizer(target, is_qat=True))
    prepared = move_exported_model_to_train(prepared)
    optimizer = torch.optim.SGD(prepared.parameters(), lr=0.01)
    for sample in samples:
        optimizer.zero_grad()
        prepared(*sample).square().sum().backward()
        optimizer.step()
    quantized = convert_pt2e(move_exported_model_to_eval(prepared))
    program = torch.export.export(quantized, samples[0], strict=True)
    partitioner = NeutronPartitioner(generate_neutron_compile_spec("imxrt700"), target)
    edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
    assert_runs(bytes(edge.to_executorch().buffer), quantized, samples[0])
