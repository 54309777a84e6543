"""Operators as people write them: each is rewritten to what the NPU computes, exactly, and close to float."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from openneutron.executorch.capture.export import export
from openneutron.executorch.fx import operator_name
from openneutron.executorch.pipeline import Built, build
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.executorch.quantize.accuracy import output_sqnr
from openneutron.executorch.quantize.passes.fold_constants import fold_constants
from openneutron.executorch.quantize.passes.replace.replace_complex import _is_complex, replace_complex
from openneutron.executorch.quantize.passes.replace.replace_magnitude import OPERATORS, replace_magnitude
from openneutron.executorch.run.runtime import load_program
from tests.executorch import harness
from tests.executorch.harness import Function

Case = Callable[["Network", torch.Tensor], torch.Tensor]

CASES: dict[str, Case] = {
    "divided by a constant of each channel": lambda s, x: (x - s.mean) / s.std,
    "divided by a tensor": lambda s, x: x / (x.abs() + 1.0),
    "normalized": lambda s, x: functional.normalize(x, dim=1),
    "where, constant mask and number": lambda s, x: torch.where(s.mask, x, 0.5),
    "where, constant mask": lambda s, x: torch.where(s.mask, x, -x),
    "where, comparison with a number": lambda s, x: torch.where(x > 0, x, x * 0.1),
    "where, comparison with a tensor": lambda s, x: torch.where(x >= s.shifted(x), x, s.shifted(x)),
    "evenly indexed": lambda s, x: x[:, [0, 2]] * 2.0,
    "unevenly indexed": lambda s, x: x[:, :, [5, 0, 3, 3]] * 2.0,
    "indexed twice": lambda s, x: x[:, :, s.positions, s.positions.flip(0)].relu(),
    "gathered": lambda s, x: torch.gather(x, 3, s.places) * 2.0,
    "a sum with a factor": lambda s, x: torch.add(x, x.relu(), alpha=0.5),
    "integers and booleans": lambda s, x: x * torch.arange(8) + s.mask,
    "signals resized": lambda s, x: functional.interpolate(x.flatten(2), scale_factor=2, mode="linear"),
    "cubic": lambda s, x: functional.interpolate(x, scale_factor=(2, 1.5), mode="bicubic"),
    "smoothed": lambda s, x: functional.interpolate(x, size=(3, 5), mode="bilinear", antialias=True),
    "index_select": lambda s, x: torch.index_select(x, 3, s.positions).relu(),
    "rolled": lambda s, x: torch.roll(x, (1, -2), (2, 3)).relu(),
    "padded around": lambda s, x: functional.pad(x, (1, 2, 0, 1), mode="circular").relu(),
    "padded by its edges": lambda s, x: functional.pad(x, (1, 2, 0, 1), mode="replicate").relu(),
    "kept where positive": lambda s, x: x * (x > 0.1).float() + (x <= 0.1).to(x.dtype),
    "kept where larger": lambda s, x: x * (x > s.shifted(x)).float(),
    "counted where positive": lambda s, x: (x > 0.1).float().mean((2, 3)),
    "patches put back": lambda s, x: functional.fold(functional.unfold(x, 2, stride=2), (8, 8), 2, stride=2) * 2.0,
    "patches added up": lambda s, x: functional.fold(
        functional.unfold(x[:, :2], 3, stride=2, padding=1), (8, 8), 3, stride=2, padding=1
    ),
    "clamped by a tensor": lambda s, x: torch.clamp(x, min=s.shifted(x)) * 2.0,
    "a grid of places": lambda s, x: functional.affine_grid(x[:, :2, 0, :3], [1, 1, 3, 4], align_corners=False),
    "a spectrum": lambda s, x: torch.fft.rfft(x, norm="ortho").real,
    "a spectrum over channels": lambda s, x: torch.view_as_real(torch.fft.rfft(x, n=2, dim=1)).sum(-1),
    "a spectrogram": lambda s, x: torch.stft(x.flatten(1), 16, 8, 12, torch.hann_window(12), return_complex=True).abs(),
    "power of a spectrum": lambda s, x: (torch.fft.rfft(x) * torch.fft.rfft(x).conj()).real,
    "the mean of everything": lambda s, x: x - x.relu().mean(),
    "local response": lambda s, x: functional.local_response_norm(x, 3),
    "standard deviation": lambda s, x: x - torch.std(x, dim=(2, 3), keepdim=True),
}

# What is joined with parts of itself before anything is quantized: readers of one tensor share its range in a circle.
ON_THE_INPUT: dict[str, Case] = {
    "input padded around": lambda s, x: s.conv(functional.pad(x, (1, 1, 1, 1), mode="circular")),
    "input padded by its edges": lambda s, x: s.conv(functional.pad(x, (2, 0, 1, 3), mode="replicate")),
    "input beside a part of it": lambda s, x: torch.cat([x[:, :1], x.flip(3), x], 1).relu(),
}


class Network(nn.Module):
    """Cases behind the same convolution, and some before any."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.register_buffer("mean", torch.rand(1, 4, 1, 1))
        self.register_buffer("std", torch.rand(1, 4, 1, 1) + 0.5)
        self.register_buffer("mask", torch.arange(8) % 3 == 0)
        self.register_buffer("places", torch.arange(4 * 8 * 5).reshape(1, 4, 8, 5) % 7)
        self.register_buffer("positions", torch.tensor([1, 6, 2]))

    def shifted(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(1, keepdim=True)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = self.conv(x)
        return tuple(case(self, y) for case in CASES.values()) + tuple(case(self, x) for case in ON_THE_INPUT.values())


def test_all_of_them_run_on_the_npu_exactly_and_close_to_float() -> None:
    torch.manual_seed(0)
    model, image = Network().eval(), (torch.rand(1, 3, 8, 8),)
    built = build(model, image, calibration=[image])
    left = [f"{v.operator}: {v.reason}" for v in built.report.nodes if not v.delegated and v.code != "border"]
    assert not left
    got = load_program(built.pte).run(*image)
    with torch.no_grad():
        sqnr = dict(zip([*CASES, *ON_THE_INPUT], output_sqnr([model(*image)], [tuple(got)]), strict=True))
    # Rounding moves a value across a comparison's threshold, and the whole value is then wrong.
    jumps = {name for name in sqnr if name.startswith(("kept where", "counted"))}
    assert min(sqnr[name] for name in jumps) > 15, sqnr
    assert min(found for name, found in sqnr.items() if name not in jumps) > 30, sqnr
    assert_exact(built, image, got)


def assert_exact(built: Built, image: tuple[torch.Tensor, ...], got: tuple[torch.Tensor, ...]) -> None:
    """0 LSB from LiteRT's reference."""
    exact = harness.representable(built, image)
    stored = dict(zip(built.edge.graph_signature.user_inputs, exact, strict=True))
    results = load_program(built.pte).run(*exact)
    for (golden, scale, zero), result in zip(harness._expected(built, stored), results, strict=True):
        here = np.rint(result.numpy().astype(np.float64) / scale).astype(int) + zero
        assert np.array_equal(here, golden.astype(int))


SPECTRA: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a window in the middle": lambda x: torch.stft(x, 16, 4, 10, torch.hamming_window(10), return_complex=True).imag,
    "no window": lambda x: torch.stft(x, 16, return_complex=True, normalized=True, center=False).real,
    "one signal": lambda x: torch.stft(x[0], 16, 8, return_complex=True, window=torch.ones(16)).abs(),
    "fewer samples": lambda x: torch.fft.rfft(x, n=24).imag,
    "more samples than there are": lambda x: torch.fft.rfft(x, n=64).real,
    "forward": lambda x: torch.fft.rfft(x.reshape(3, 4, 10), dim=1, norm="forward").abs(),
    "multiplied": lambda x: torch.view_as_real(torch.fft.rfft(x) * x[:, :21].cos()),
}


@pytest.mark.parametrize("name", SPECTRA)
def test_a_spectrum_is_computed_with_real_numbers(name: str) -> None:
    x = torch.randn(3, 40)
    model = export(Function(SPECTRA[name]), (x,)).module()
    fold_constants(model)
    assert replace_complex(model) > 0
    assert not any(_is_complex(node) for node in model.graph.nodes)
    model.recompile()
    assert torch.allclose(model(x), SPECTRA[name](x), atol=1e-4)


@pytest.mark.parametrize("spectrum", [
    lambda x: torch.fft.rfft(x).angle(),
    lambda x: torch.fft.irfft(torch.fft.rfft(x)),
    lambda x: torch.fft.fft(x).real,
    lambda x: torch.stft(x, 16, onesided=False, window=torch.ones(16), return_complex=True).abs(),
    lambda x: torch.stft(x, 16, window=x[0, :16], return_complex=True).abs(),
])  # fmt: skip
def test_a_spectrum_without_a_real_form_stays(spectrum: Callable[[torch.Tensor], torch.Tensor]) -> None:
    assert replace_complex(export(Function(spectrum), (torch.randn(3, 40),)).module()) == 0


def test_the_length_of_complex_numbers_keeps_what_is_quiet_in_16_bits() -> None:
    def spectrum(x: torch.Tensor) -> torch.Tensor:
        real, imaginary = x[:, :8], x[:, 8:]
        return torch.sqrt(real * real + imaginary.pow(2))

    torch.manual_seed(0)
    # Loud and quiet bins, 80 dB apart.
    x = torch.randn(4, 16, 8) * torch.logspace(0, -4, 8)[:, None].repeat(2, 1)
    length = Function(spectrum)
    made = NeutronQuantizer(activations="int16").transform_for_annotation(export(length, (x,)).module())
    assert "aten.sqrt.default" not in {operator_name(node) for node in made.graph.nodes}
    assert torch.allclose(made(x), spectrum(x), rtol=2e-4, atol=0)
    rewritten = export(length, (x,)).module()
    before = len(rewritten.graph.nodes)
    assert replace_magnitude(rewritten, lambda node: True) == 1
    assert len(rewritten.graph.nodes) - before == OPERATORS + 12 - 4  # two squares, their sum and its root are gone
    narrow = export(length, (x,)).module()
    assert replace_magnitude(narrow, lambda node: "sqrt" in node.name) == 1  # its reader has 8 bits
    assert len(narrow.graph.nodes) - before == OPERATORS - 4
    assert torch.allclose(narrow(x), spectrum(x), rtol=2.5e-3, atol=0)
    found = harness.check({"length": lambda: (spectrum, (x,))}, activations="int16")
    (got,) = load_program(found.built.pte).run(x)
    assert torch.allclose(got, spectrum(x), rtol=1e-3, atol=20 * float(x.abs().max()) / 32767)
    plain = NeutronQuantizer().transform_for_annotation(export(length, (x,)).module())
    assert "aten.sqrt.default" in {operator_name(node) for node in plain.graph.nodes}
