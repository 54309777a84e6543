"""Keyword spotting from sound to answer: synthetic words, log-mel features, DS-CNN, INT8, `.pte`.

    python examples/keyword_spotting.py

There is no speech in this repository, so the four "words" are synthetic sounds. Replace `sounds` by your recordings; the rest
stays as it is: features of 49 frames × 10 bands and the network of MLPerf Tiny.
"""

from __future__ import annotations

import math

import torch
from torch import nn

import openneutron as on
from openneutron.zoo.ds_cnn import DsCnn

WORDS = ("rise", "fall", "hum", "hiss")
RATE = 16_000  # samples per second; one second per word
WINDOW, HOP, BANDS = 640, 320, 10  # 40 ms windows every 20 ms: 49 frames, as MLPerf Tiny has them


def sounds(count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Return `count` seconds of sound, and the word of each."""
    labels = torch.randint(len(WORDS), (count,), generator=generator)
    t = torch.arange(RATE) / RATE
    base = 300 + 300 * torch.rand(count, 1, generator=generator)
    sweep = torch.tensor([1200.0, -200.0, 0.0, 0.0])[labels][:, None]
    tone = torch.sin(2 * math.pi * (base + sweep * t / 2) * t)
    noise = torch.randn(count, RATE, generator=generator)
    voiced = (labels != WORDS.index("hiss"))[:, None]
    return torch.where(voiced, tone + 0.2 * noise, noise), labels


def features(audio: torch.Tensor) -> torch.Tensor:
    """[N, samples] → [N, 1, 49, 10]: the logarithm of the energy in ten mel bands of each frame."""
    frames = torch.stft(audio, WINDOW, HOP, window=torch.hann_window(WINDOW), center=False, return_complex=True)
    energy = frames.abs().square().transpose(1, 2)
    bins = torch.linspace(0, RATE / 2, energy.shape[2])
    mel = torch.linspace(0, 2595 * math.log10(1 + 4000 / 700), BANDS + 2)
    edges = 700 * (10 ** (mel / 2595) - 1)
    up = (bins[:, None] - edges[:-2]) / (edges[1:-1] - edges[:-2])
    down = (edges[2:] - bins[:, None]) / (edges[2:] - edges[1:-1])
    bands = energy @ torch.minimum(up, down).clamp(min=0)
    # Centred and scaled for these sounds, as with the mean and deviation of a training set.
    return torch.log(bands + 1e-3)[:, None] / 2 - 3.2


def train(model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor, size: int = 16) -> None:
    """Train for one pass over the training set, which takes seconds and is enough for four synthetic sounds."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 0.3  # with so few steps the running averages would hardly move otherwise
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    model.train()
    for first in range(0, len(labels), size):
        batch = slice(first, first + size)
        loss = nn.functional.nll_loss(torch.log(model(inputs[batch]) + 1e-6), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()


def main() -> tuple[float, float]:
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    audio, labels = sounds(360, generator)
    inputs = features(audio)
    model = DsCnn()
    train(model, inputs[:320], labels[:320])

    test, wanted = inputs[320:], labels[320:]
    program = on.compile(model, (test[:1],), calibration=[inputs[:64]], target="mcxn94x", name="kws")
    program.save("kws.pte")
    answers = torch.cat([program.run(one[None])[0] for one in test]).argmax(1)
    accuracy = [float((found == wanted).float().mean()) for found in (model(test).argmax(1), answers)]
    totals = program.report.totals
    print(f"float {accuracy[0]:.1%}, INT8 on the NPU {accuracy[1]:.1%} of {len(wanted)} sounds")
    print(f"{totals.milliseconds:.2f} ms estimated on mcxn94x, {totals.peak_bytes:,} bytes of memory")
    print(f"the first sound is {WORDS[int(answers[0])]!r}, and it was {WORDS[int(wanted[0])]!r}")
    return accuracy[0], accuracy[1]


if __name__ == "__main__":
    main()
