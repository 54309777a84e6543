"""Streaming wake word detection, frame by frame: float, INT8 and INT16 activations, and the probability over time.

    python examples/wake_word.py

The network hears one frame of 20 ms per call and keeps two things between calls: the last two frames, and the state of a
GRU. Both are buffers that `forward` changes, so both stay quantized in the NPU's memory.

There is no speech in this repository: a small formant synthesizer says the words, in many voices. The wake word is "sesame";
the others share its sounds in another order. Replace `say` by recordings, and the rest stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

import openneutron as on

Array = npt.NDArray[np.float64]

RATE = 16_000  # samples per second
HOP, WINDOW, BANDS = 320, 512, 16  # a frame every 20 ms, seen through 32 ms, in 16 mel bands
WORD = "s e s A m i"
OTHERS = ("s A m r", "m i s e s", "A s e s", "s i m i", "r A n i", "m e n u", "s e s", "o m e r")
# The first three formants of vowels and nasals in hertz, and their loudness.
VOICED = {
    "i": (270, 2290, 3010, 1.0), "e": (530, 1840, 2480, 1.0), "A": (640, 1190, 2390, 1.0), "u": (300, 870, 2240, 1.0),
    "o": (570, 840, 2410, 1.0), "r": (490, 1350, 1690, 0.9), "m": (250, 1000, 2200, 0.4), "n": (250, 1450, 2300, 0.4),
}  # fmt: skip
AFTER = 15  # frames after a word's end in which the network shall detect it


def say(word: str, rng: np.random.Generator) -> Array:
    """Synthesize one word in a random voice: pitch, length of the vocal tract and pace."""
    pitch, tract, pace = rng.uniform(90, 230), rng.uniform(0.9, 1.2), rng.uniform(0.8, 1.25)
    parts = []
    for sound in word.split():
        count = int(RATE * pace * rng.uniform(0.07, 0.13))
        t = np.arange(count) / RATE
        if sound == "s":
            hiss = rng.normal(size=count)
            made = 0.3 * (hiss - np.roll(hiss, 1))
        else:
            *formants, loud = VOICED[sound]
            harmonics = np.arange(1, int(4500 / pitch))[:, None] * pitch * rng.uniform(0.97, 1.03)
            centres = np.asarray(formants) * tract
            weight = (1 / (1 + ((harmonics - centres) / 90) ** 2)).sum(1, keepdims=True)
            made = loud * (weight * np.sin(2 * math.pi * harmonics * t)).sum(0)
        edge = np.minimum(1, np.minimum(t, t[::-1]) / 0.012)
        parts.append(made * edge)
    return np.concatenate(parts)


def features(sound: Array) -> Array:
    """[samples] → [frames, BANDS]: the logarithm of the energy in each mel band of each frame."""
    count = 1 + (len(sound) - WINDOW) // HOP
    frames = np.stack([sound[at * HOP : at * HOP + WINDOW] for at in range(count)]) * np.hanning(WINDOW)
    energy = np.abs(np.fft.rfft(frames)) ** 2
    bins = np.linspace(0, RATE / 2, energy.shape[1])[:, None]
    edges = 700 * (10 ** (np.linspace(0, 2595 * math.log10(1 + 7000 / 700), BANDS + 2) / 2595) - 1)
    up, down = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2]), (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    return np.log(energy @ np.clip(np.minimum(up, down), 0, None) + 1e-2) / 4 - 0.5


def recording(words: list[str], rng: np.random.Generator) -> tuple[Array, Array, list[int]]:
    """Return features of words with pauses and noise, the label of each frame (-1: any), and where each word ends."""
    pieces, ends, at = [], [], 0
    for word in words:
        quiet, spoken = np.zeros(int(RATE * rng.uniform(0.3, 0.6))), say(word, rng) * rng.uniform(0.5, 1.5)
        pieces += [quiet, spoken]
        at += len(quiet) + len(spoken)
        ends.append(at // HOP)
    pieces.append(np.zeros(int(RATE * 0.4)))
    sound = np.concatenate(pieces)
    found = features(sound + rng.normal(size=len(sound)) * rng.uniform(0.01, 0.05))
    answers = np.zeros(len(found))
    for word, end in zip(words, ends, strict=True):
        if word == WORD:
            answers[end - 6 : end + AFTER + 6] = -1
            answers[end : end + AFTER] = 1
    return found, answers, ends


class Spotter(nn.Module):
    """One frame [1, BANDS, 1] in, the probability that the word was just said out."""

    def __init__(self, channels: int = 24, cells: int = 32) -> None:
        super().__init__()
        self.front = nn.Conv1d(BANDS, channels, 3)
        self.memory = nn.GRU(channels, cells, batch_first=True)
        self.head = nn.Linear(cells, 1)
        self.register_buffer("past", torch.zeros(1, BANDS, 2))
        self.register_buffer("hidden", torch.zeros(1, 1, cells))

    def forward(self, frame: torch.Tensor) -> torch.Tensor:
        window = torch.cat([self.past, frame], 2)
        self.past.copy_(window[:, :, 1:])
        y, hidden = self.memory(torch.relu(self.front(window)).transpose(1, 2), self.hidden)
        self.hidden.copy_(hidden)
        return torch.sigmoid(self.head(y[:, 0]))

    def logits(self, frames: torch.Tensor) -> torch.Tensor:
        """Return the logits for whole recordings [N, BANDS, frames] at once, for training."""
        y, _ = self.memory(torch.relu(self.front(nn.functional.pad(frames, (2, 0)))).transpose(1, 2))
        return self.head(y)[..., 0]


def train(model: Spotter, rng: np.random.Generator, recordings: int, epochs: int) -> None:
    """Train on recordings of three words each; frames with label -1 do not count."""
    made = [recording([WORD if rng.random() < 0.4 else str(rng.choice(OTHERS)) for _ in range(3)], rng)
            for _ in range(recordings)]  # fmt: skip
    length = max(len(frames) for frames, _, _ in made)
    x = np.stack([np.pad(frames, ((0, length - len(frames)), (0, 0)), mode="edge") for frames, _, _ in made])
    y = np.stack([np.pad(answers, (0, length - len(answers)), constant_values=-1) for _, answers, _ in made])
    inputs, wanted = torch.tensor(x, dtype=torch.float32).transpose(1, 2), torch.tensor(y, dtype=torch.float32)
    optimizer = torch.optim.Adam(model.parameters(), 4e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, epochs * (recordings // 32 + 1))
    order = torch.Generator().manual_seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the products are small: threads would wait for each other
    for _ in range(epochs):
        for batch in torch.randperm(recordings, generator=order).split(32):
            counts = wanted[batch] >= 0
            loss = nn.functional.binary_cross_entropy_with_logits(
                model.logits(inputs[batch])[counts], wanted[batch][counts], pos_weight=torch.tensor(3.0)
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    torch.set_num_threads(threads)
    model.eval()


def count_errors(probability: Array, words: list[str], ends: list[int]) -> tuple[int, int]:
    """Return how many wake words were missed, and how many other words were detected as one."""
    said = [bool((probability[end - 3 : end + AFTER] > 0.5).any()) for end in ends]
    missed = sum(word == WORD and not yes for word, yes in zip(words, said, strict=True))
    return missed, sum(word != WORD and yes for word, yes in zip(words, said, strict=True))


def picture(curves: dict[str, Array], words: list[str], ends: list[int]) -> str:
    """Return an SVG of the probability over time, with the end of each wake word."""
    frames, colours = len(next(iter(curves.values()))), ("#888", "#d62", "#06c")
    body = []
    for word, end in zip(words, ends, strict=True):
        x = 40 + 860 * end / frames
        text, dash = ("sesame", "0") if word == WORD else (word.replace(" ", ""), "3")
        body.append(f'<line x1="{x:.1f}" y1="20" x2="{x:.1f}" y2="180" stroke="#bbb" stroke-dasharray="{dash}"/>')
        body.append(f'<text x="{x - 2:.1f}" y="195" font-size="9" text-anchor="end">{text}</text>')
    for at, ((name, curve), colour) in enumerate(zip(curves.items(), colours, strict=True)):
        points = " ".join(f"{40 + 860 * i / frames:.1f},{180 - 155 * p:.1f}" for i, p in enumerate(curve))
        body.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{2.5 - at * 0.6}"/>')
        body.append(f'<text x="{50 + 130 * at}" y="14" font-size="12" fill="{colour}">{name}</text>')
    scale = "".join(f'<text x="8" y="{184 - 155 * p:.0f}" font-size="10">{p:.1f}</text>' for p in (0, 0.5, 1))
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 920 205" font-family="sans-serif">'
    return f'{head}<rect width="920" height="205" fill="white"/>{scale}{"".join(body)}</svg>\n'


def stream(run: Callable[[torch.Tensor], Any], frames: Array) -> Array:
    """Return the output for each frame in turn."""
    with torch.no_grad():
        answers = [run(torch.tensor(frame, dtype=torch.float32)[None, :, None]) for frame in frames]
    return np.array([float(one[0] if isinstance(one, tuple) else one) for one in answers])


def main(recordings: int = 640, epochs: int = 24, words_heard: int = 60) -> dict[str, tuple[int, int]]:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    model = Spotter()
    train(model, rng, recordings, epochs)
    spoken = [WORD if at % 3 == 0 else str(rng.choice(OTHERS)) for at in range(words_heard)]
    frames, _, ends = recording(spoken, rng)
    known, _, _ = recording([WORD, *OTHERS], rng)
    calibration = [(torch.tensor(frame, dtype=torch.float32)[None, :, None],) for frame in known]

    curves, programs = {}, {}
    for name, activations in (("INT8", "int8"), ("INT16x8", "int16")):
        programs[name] = on.compile(
            model, calibration[0], calibration=calibration, activations=activations,
            target="mcxn94x", name=f"wake word, {name}", dump_intermediates=True,
        )  # fmt: skip
        curves[name] = stream(programs[name].run, frames)
    curves = {"float": stream(model, frames), **curves}
    counts = {name: count_errors(curve, spoken, ends) for name, curve in curves.items()}
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters; {len(frames)} frames, {words_heard} words")
    for name, (missed, wrong) in counts.items():
        off = np.abs(curves[name] - curves["float"])
        print(
            f"{name:8} missed {missed:2}, taken for it {wrong:2}; probability off by {off.mean():.4f}, at most {off.max():.3f}"
        )
    print("\none frame, as the open schedule has it: an estimate, not a measurement on silicon")
    print("chip      activations     cycles         ms   bytes of RAM  bytes of flash  on the NPU")
    for name, program in programs.items():
        (source,) = [data for file, data in program.intermediates.items() if file.endswith("partition_0.tflite")]
        for chip in on.targets.names():
            totals = on.compile(source, target=chip).report.totals
            flash = totals.weight_bytes + totals.microcode_bytes
            share = f"{totals.operators_converted} of {totals.operators_total}"
            print(f"{chip:9} {name:11} {totals.cycles:10,} {totals.milliseconds:10.3f} {totals.peak_bytes:14,}"
                  f" {flash:15,}  {share}")  # fmt: skip
    shown = ends[min(9, len(ends) - 1)] + 25
    Path("wake_word.svg").write_text(
        picture({name: curve[:shown] for name, curve in curves.items()}, spoken[:10], ends[:10])
    )
    print("\nwake_word.svg shows the probability over the first ten words")
    return counts


if __name__ == "__main__":
    main()
