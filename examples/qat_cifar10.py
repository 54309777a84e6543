"""Quantization-aware training on CIFAR-10: recovers the accuracy that simple post-training quantization loses.

The network is the zoo's small MobileNetV2, whose depth-wise convolutions do not survive one weight scale per tensor. Every
figure but the float one is measured on the `.pte`, in the stock ExecuTorch runtime, on the 1,000 test images of the
package. Training needs no download: the float network teaches its quantized copy on the 200 training images that
travel with the package. With `--data FOLDER` it trains on the labels of the whole training set instead.

    python examples/qat_cifar10.py
    python examples/qat_cifar10.py --data build/cifar10 --steps 400

The exit code is 1 when crude quantization loses less than 2 points or training ends more than 0.5 point below float.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from openneutron.terminal.quiet import quiet

with quiet():  # dependencies of torch announce what they cannot load
    import torch
    from executorch.export import ExportRecipe, export

    from openneutron import zoo
    from openneutron.executorch.recipes import NeutronRecipeType, Training, run_recipe
    from openneutron.executorch.run.runtime import load_program
    from openneutron.zoo._cifar10 import calibration_images, preprocess

MODEL = "mobilenet_v2_cifar"
# The goals of this example.
LEAST_CRUDE_LOSS = 2.0
MOST_QAT_LOSS = 0.5
# Small steps: the network is already trained and only has to adapt to its quantization grid.
LEARNING_RATE = 3e-4
BATCH = 50
SHIFT = 2  # pixels by which images are shifted at random, against overfitting 200 of them
SEED = 1

Batches = Callable[[np.random.Generator], tuple[torch.Tensor, torch.Tensor]]


def main(command: Sequence[str] | None = None) -> int:
    """Compile, train and measure; the exit code."""
    arguments = _arguments(command)
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    model = zoo.load(MODEL)
    console = Console()
    rows: list[tuple[str, float, float]] = []
    images = model.test_images()
    pairs = list(zip(images.inputs.split(1), images.labels, strict=True))[: arguments.images]

    def measure(label: str, make: Callable[[], bytes]) -> float:
        began = time.perf_counter()
        with console.status(label), quiet():
            top = accuracy(load_program(make()).run, pairs)
        rows.append((label, top, time.perf_counter() - began))
        return top

    floating = accuracy(lambda x: (model.model(x),), pairs)
    rows.append(("float, PyTorch", floating, 0.0))
    crude = measure("crude PTQ: one weight scale per tensor, min-max", lambda: crude_pte(model))
    measure("PTQ: a weight scale per channel, histogram", lambda: careful_pte(model))
    trained = measure("QAT: a weight scale per channel", lambda: trained_pte(model, arguments))
    table = Table(
        "network", f"top-1 on {len(pairs):,} images", "against float", "seconds", title="CIFAR-10, measured on the .pte"
    )
    for label, top, seconds in rows:
        table.add_row(label, f"{top:.1f} %", f"{top - floating:+.1f}", f"{seconds:.0f}" if seconds else "")
    console.print(table)
    kept = floating - crude >= LEAST_CRUDE_LOSS and floating - trained <= MOST_QAT_LOSS
    return 0 if kept else 1


def crude_pte(model: zoo.ZooModel) -> bytes:
    """Return the program of the simplest post-training quantization, by ExecuTorch's own `export`."""
    recipe = ExportRecipe.get_recipe(
        NeutronRecipeType.INT8_PTQ_PER_TENSOR, observer="minmax", calibration=model.calibration
    )
    return bytes(export(model.model, [model.example_inputs], recipe).get_pte_buffer())


def careful_pte(model: zoo.ZooModel) -> bytes:
    """Return the program of careful post-training quantization."""
    recipe = ExportRecipe.get_recipe(NeutronRecipeType.INT8_PTQ_PER_CHANNEL, calibration=model.calibration)
    return bytes(export(model.model, [model.example_inputs], recipe).get_pte_buffer())


def trained_pte(model: zoo.ZooModel, arguments: argparse.Namespace) -> bytes:
    """Return the program trained with simulated rounding, in a stage that replaces ExecuTorch's QUANTIZE."""
    recipe = ExportRecipe.get_recipe(NeutronRecipeType.INT8_QAT_PER_CHANNEL, train=training(model.model, arguments))
    return bytes(run_recipe(model.model, [model.example_inputs], recipe).get_pte_buffer())


def training(teacher: torch.nn.Module, arguments: argparse.Namespace) -> Callable[[Any, Training], None]:
    """Return the train function: fit the float network's outputs on the package's images, or the labels of the whole set."""
    teacher = copy.deepcopy(teacher).eval()
    batches = whole_set(arguments.data) if arguments.data else shipped_images()

    def train(quantized: Any, state: Training) -> None:
        random = np.random.default_rng(SEED)
        optimizer = torch.optim.Adam(quantized.parameters(), lr=LEARNING_RATE)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, arguments.steps)
        for step in range(1, arguments.steps + 1):
            images, labels = batches(random)
            answers = quantized(images)
            with torch.no_grad():
                wanted = teacher(images)
            loss = torch.nn.functional.mse_loss(answers, wanted)
            if arguments.data:
                loss = loss + torch.nn.functional.cross_entropy(answers, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            state.step(loss, step, arguments.steps)

    return train


def shipped_images() -> Batches:
    """Random batches of the 200 training images of the package."""
    data = calibration_images()
    return lambda random: _batch(data.images, data.labels, random)


def whole_set(folder: Path) -> Batches:
    """Random batches of all 50,000 training images."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))
    import cifar10

    data = cifar10.load(folder).train
    return lambda random: _batch(data.images, data.labels, random)


def _batch(images: Any, labels: Any, random: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    chosen = random.choice(len(labels), BATCH, replace=False)
    moved = np.pad(images[chosen], ((0, 0), (SHIFT, SHIFT), (SHIFT, SHIFT), (0, 0)), constant_values=128)
    top, left = random.integers(0, 2 * SHIFT + 1, 2)
    cut = moved[:, top : top + 32, left : left + 32]
    if random.random() < 0.5:
        cut = cut[:, :, ::-1]
    return preprocess(np.ascontiguousarray(cut)), torch.from_numpy(labels[chosen].astype(np.int64))


@torch.no_grad()
def accuracy(run: Callable[[torch.Tensor], Any], pairs: Sequence[tuple[torch.Tensor, Any]]) -> float:
    """Return the percentage of correctly classified images, one image at a time as the program takes them."""
    return 100 * sum(int(run(image)[0].argmax()) == int(label) for image, label in pairs) / len(pairs)


def _arguments(command: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with CIFAR-10, as training/cifar10.py makes it")
    parser.add_argument("--steps", type=int, default=120, help=f"optimizer steps of {BATCH} images (default 120)")
    parser.add_argument("--images", type=int, default=1000, help="test images to measure on (default 1000)")
    return parser.parse_args(command)


if __name__ == "__main__":
    sys.exit(main())
