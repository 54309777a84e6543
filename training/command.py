"""The command line that the training scripts of the CIFAR-10 models share: load, train, save, read back, measure."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import cifar10
from loop import Settings, accuracy, make_deterministic, train
from torch import nn
from weights import WEIGHTS, save_weights

from openneutron.errors import OpenNeutronError
from openneutron.zoo._store import load_weights

Twin = TypeVar("Twin", bound=nn.Module)


def run(
    name: str,
    *,
    network: type[nn.Module],
    twin: Callable[[], Twin],
    finish: Callable[[Twin], nn.Module],
    epochs: int,
    **settings_changed: Any,
) -> int:
    """Train ``twin()``, which returns logits, make a ``network`` of it with ``finish``, and save that to the zoo.

    ``settings_changed`` are fields of `Settings` that differ from their defaults.
    """
    parser = argparse.ArgumentParser(description=f"Train {name} on CIFAR-10.")
    parser.add_argument("--cache", type=Path, required=True, help="folder for the data set")
    parser.add_argument("--out", type=Path, default=WEIGHTS / f"{name}.npz", help="where to write the weights")
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bfloat16", action="store_true", help="faster on CPUs with bfloat16 instructions")
    parser.add_argument("--device", default="cpu", help="where to train: cpu or cuda")
    arguments = parser.parse_args()
    settings = Settings(
        epochs=arguments.epochs, seed=arguments.seed, bfloat16=arguments.bfloat16, device=arguments.device,
        **settings_changed,
    )  # fmt: skip
    try:
        data = cifar10.load(arguments.cache)
    except OpenNeutronError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    make_deterministic(settings)
    trainee = twin()
    train(trainee, data.train, settings)
    save_weights(finish(trainee), arguments.out)

    stored = network()
    load_weights(stored, arguments.out)
    print(f"{arguments.out.name}: {arguments.out.stat().st_size} bytes")
    print(f"float top-1 on all 10,000 test images: {accuracy(stored, data.test):.2f} %")
    first = cifar10.Split(data.test.images[:1000], data.test.labels[:1000])
    print(f"float top-1 on the first 1,000: {accuracy(stored, first):.2f} %")
    return 0
