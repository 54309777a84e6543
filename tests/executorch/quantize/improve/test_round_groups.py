"""4-bit weights rounded for their inputs: on the grid of their groups, with less error than rounding to nearest."""

from __future__ import annotations

import torch
from torch import nn

from openneutron.executorch.capture.export import export
from openneutron.executorch.quantize.improve.round_groups import Moments, round_groups, round_rows
from openneutron.litert.grouped_weights import group_steps, quantize_groups

LEAST = 2.0**-20


def layer() -> tuple[torch.Tensor, torch.Tensor]:
    """Weights of 12 outputs and 64 inputs, of which many depend on each other, and the inputs' moments."""
    source = torch.Generator().manual_seed(0)
    x = torch.randn(400, 20, generator=source) @ torch.randn(20, 64, generator=source)
    return torch.randn(12, 64, generator=source), (x.T @ x).double() / 400


def nearest(weight: torch.Tensor) -> torch.Tensor:
    values, scales = quantize_groups(weight.numpy(), 32, LEAST)
    return torch.from_numpy(values) * torch.from_numpy(scales)[:, None].double()


def loss(weight: torch.Tensor, found: torch.Tensor, moments: torch.Tensor) -> float:
    error = weight.double() - found
    return float((error @ moments * error).sum())


def test_the_error_of_the_results_is_much_smaller() -> None:
    weight, moments = layer()
    assert loss(weight, round_rows(weight, moments, 32, LEAST), moments) < 0.5 * loss(weight, nearest(weight), moments)


def test_weights_lie_on_the_grid_and_stay_there() -> None:
    weight, moments = layer()
    found = round_rows(weight, moments, 32, LEAST)
    importance = moments.diagonal().float().numpy()
    quotients = found / torch.from_numpy(group_steps(weight.numpy(), 32, LEAST, importance)).repeat_interleave(32, 1)
    assert torch.allclose(quotients, quotients.round(), atol=1e-6) and quotients.abs().max() <= 7
    assert torch.allclose(nearest(found.float()), found, atol=1e-5)
    assert torch.allclose(round_rows(found.float(), moments, 32, LEAST), found, atol=1e-5)


def test_few_tokens_are_not_fitted() -> None:
    """Inputs that do not depend on each other seem to in a few tokens; on others their weights must not be worse for it."""
    source = torch.Generator().manual_seed(1)
    seen, weight = torch.randn(80, 64, generator=source), torch.randn(12, 64, generator=source)
    shrunk, others = Moments.of(seen).shrunk(), torch.eye(64, dtype=torch.float64)
    between = shrunk - torch.diag(shrunk.diagonal())
    assert between.abs().max() < 0.05
    assert loss(weight, round_rows(weight, shrunk, 32, LEAST), others) < 1.1 * loss(weight, nearest(weight), others)


def test_many_tokens_keep_their_moments() -> None:
    source = torch.Generator().manual_seed(2)
    seen = torch.randn(4000, 8, generator=source) @ torch.randn(8, 16, generator=source)
    moments = Moments.of(seen[:2000])
    moments.add(seen[2000:])
    plain = (seen.T @ seen).double() / 4000
    assert torch.allclose(moments.shrunk(), plain, rtol=0.05, atol=0.05 * float(plain.max()))


def test_inputs_that_are_never_used_do_no_harm() -> None:
    weight, _ = layer()
    assert torch.isfinite(round_rows(weight, torch.zeros(64, 64, dtype=torch.float64), 0, LEAST)).all()


def test_a_module_keeps_its_function_about() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 24), nn.ReLU(), nn.Linear(24, 8)).eval()
    batches = [(torch.randn(4, 32),) for _ in range(32)]
    module = export(model, batches[0]).module()
    assert round_groups(module, batches, 32, LEAST) == 2
    with torch.no_grad():
        wanted, found = (torch.cat([one(*batch) for batch in batches]) for one in (model, module))
    error = float((wanted - found).square().mean() / wanted.square().mean())
    assert 0 < error < 0.02
