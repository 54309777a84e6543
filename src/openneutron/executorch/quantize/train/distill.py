"""Training without labels: the quantized model learns to reproduce the outputs of the float one.

Example:
    >>> train = distillation(model, [(image,) for image in images])
    >>> openneutron.compile(model, (image,), train=train)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch.fx import GraphModule

from openneutron.executorch.capture.export import Inputs, evaluation, one_thread
from openneutron.executorch.quantize.train.training import Training
from openneutron.executorch.upstream.names import tree_leaves

# Two passes over the data settle the ranges; more would overfit so few samples.
EPOCHS = 2
# Samples per step: batch norms need more than one.
BATCH = 20
# Learning rate: a weight moves by less than a step of INT8 at a time; a tensor of range 1 has steps of 1/127.
LEARNING_RATE = 1e-5


def distillation(
    model: torch.nn.Module, samples: Sequence[Inputs], *, epochs: int = EPOCHS
) -> Callable[[GraphModule, Training], None]:
    """Return a train function that fits the model to its own float outputs; single-threaded, so results are reproducible."""
    batches = [
        tuple(torch.cat(parts) for parts in zip(*samples[start : start + BATCH], strict=True))
        for start in range(0, len(samples), BATCH)
    ]
    with evaluation(model), torch.no_grad():
        answers = [tree_leaves(model(*batch)) for batch in batches]

    def train(prepared: GraphModule, training: Training) -> None:
        optimizer = torch.optim.Adam([p for p in prepared.parameters() if p.requires_grad], LEARNING_RATE)
        total = epochs * len(batches)
        with one_thread():
            for done in range(total):
                results = tree_leaves(prepared(*batches[done % len(batches)]))
                wanted = answers[done % len(batches)]
                loss = torch.stack([(y - t).square().mean() for y, t in zip(results, wanted, strict=True)]).sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                training.step(loss, done + 1, total)

    return train
