"""The training loop shared by the CIFAR-10 models of the zoo: seeded, single-threaded, no look at the test set."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch
from cifar10 import Split
from numpy.typing import NDArray
from torch import nn

from openneutron.zoo._cifar10 import preprocess

# Larger batches only cost memory during evaluation; this one keeps the largest activation under 100 MB.
EVALUATION_BATCH = 500


@dataclass(frozen=True)
class Settings:
    """How to train. The defaults are those of the committed weights."""

    epochs: int
    seed: int = 1
    batch: int = 128
    # Peak of the one-cycle schedule; SGD with momentum and batch normalisation diverges somewhere above 0.5.
    peak_rate: float = 0.15
    warm_up: float = 0.2
    momentum: float = 0.9
    weight_decay: float = 5e-4
    label_smoothing: float = 0.05
    # Images are shifted by up to this many pixels in each direction, the border filled with mid-grey.
    shift: int = 3
    bfloat16: bool = False
    threads: int = 1
    device: str = "cpu"
    optimizer: str = "sgd"


def make_deterministic(settings: Settings) -> None:
    """Fix every source of variation; a second run on the same machine gives the same bits."""
    torch.manual_seed(settings.seed)
    torch.set_num_threads(settings.threads)
    torch.use_deterministic_algorithms(True)


def train(model: nn.Module, data: Split, settings: Settings) -> None:
    """Train ``model`` (which returns logits) in place, printing one line per epoch; call `make_deterministic` first."""
    model.train().to(device=settings.device, memory_format=torch.channels_last)
    steps = len(data.labels) // settings.batch
    optimizer = _optimizer(model, settings)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer,
        max_lr=settings.peak_rate,
        total_steps=settings.epochs * steps,
        pct_start=settings.warm_up,
        cycle_momentum=False,
    )
    loss_of = nn.CrossEntropyLoss(label_smoothing=settings.label_smoothing)
    random = np.random.default_rng(settings.seed)
    started = time.monotonic()
    for epoch in range(settings.epochs):
        order = random.permutation(len(data.labels))
        total, right = 0.0, 0
        for step in range(steps):
            chosen = order[step * settings.batch : (step + 1) * settings.batch]
            images = preprocess(augment(data.images[chosen], settings.shift, random))
            images = images.to(settings.device).contiguous(memory_format=torch.channels_last)
            labels = torch.from_numpy(data.labels[chosen].astype(np.int64)).to(settings.device)
            with torch.autocast(settings.device, torch.bfloat16, enabled=settings.bfloat16):
                logits = model(images)
            loss = loss_of(logits.float(), labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
            right += int((logits.argmax(dim=1) == labels).sum())
        seen = steps * settings.batch
        print(
            f"epoch {epoch + 1:2d}/{settings.epochs}  loss {total / steps:.4f}  train {100 * right / seen:.2f} %  "
            f"{time.monotonic() - started:.0f} s",
            flush=True,
        )
    model.eval().to(device="cpu", memory_format=torch.contiguous_format)


def augment(images: NDArray[np.uint8], shift: int, random: np.random.Generator) -> NDArray[np.uint8]:
    """Mirror half of the images and shift each by up to ``shift`` pixels in both directions."""
    count, height, width, _ = images.shape
    padded = np.pad(images, ((0, 0), (shift, shift), (shift, shift), (0, 0)), constant_values=128)
    rows = random.integers(0, 2 * shift + 1, (count, 1)) + np.arange(height)
    columns = random.integers(0, 2 * shift + 1, (count, 1)) + np.arange(width)
    mirrored = random.random(count) < 0.5
    columns[mirrored] = columns[mirrored, ::-1]
    shifted: NDArray[np.uint8] = padded[np.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]]
    return shifted


@torch.no_grad()
def accuracy(model: nn.Module, data: Split) -> float:
    """Return the share of images that ``model`` classifies rightly, in per cent."""
    model.eval()
    right = 0
    for start in range(0, len(data.labels), EVALUATION_BATCH):
        answers = model(preprocess(data.images[start : start + EVALUATION_BATCH])).argmax(dim=1).numpy()
        right += int((answers == data.labels[start : start + EVALUATION_BATCH]).sum())
    return 100 * right / len(data.labels)


def _optimizer(model: nn.Module, settings: Settings) -> torch.optim.Optimizer:
    if settings.optimizer == "adam":
        return torch.optim.Adam(_groups(model, settings), lr=0.0)
    return torch.optim.SGD(_groups(model, settings), lr=0.0, momentum=settings.momentum, nesterov=True)


def _groups(model: nn.Module, settings: Settings) -> list[dict[str, object]]:
    """Decay the weights only: decaying biases and normalisation gains costs accuracy in small networks."""
    weights = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    return [
        {"params": weights, "weight_decay": settings.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
