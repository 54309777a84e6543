"""Training state: what the user's train function gets, and the checks during training."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import GraphModule

from openneutron.errors import OpenNeutronError, OptionError
from openneutron.executorch.fx import operator_name
from openneutron.executorch.quantize.accuracy import SAMPLES, copy_tensors

STAGE = "qat"
_NORM = "aten.batch_norm.default"
_TRAINING_ARGUMENT = 5  # batch_norm(input, weight, bias, mean, variance, training, …)


@dataclass(frozen=True)
class Schedule:
    """When batch norm statistics and observers are frozen, as fractions of the training.

    Batch norms first, so that the weights they are folded into settle, then the observers, so that the last steps train
    against exactly the scales the program will have. The defaults are those of torchvision's reference: 3 and 4 of 8 epochs.
    """

    freeze_norms: float = 3 / 8
    freeze_observers: float = 4 / 8

    def __post_init__(self) -> None:
        for name in ("freeze_norms", "freeze_observers"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= 1:
                raise OptionError(f"{name} is {value!r}", where="Schedule", hint="give a part of the training, 0 to 1")


@dataclass
class Training:
    """Handed to the train function together with the model; call `step` after each optimizer step.

    Example:
        >>> def train(model, training):
        ...     for done, (images, labels) in enumerate(batches, 1):
        ...         loss = criterion(model(images), labels)
        ...         optimizer.zero_grad(); loss.backward(); optimizer.step()
        ...         training.step(loss, done, len(batches))
    """

    model: GraphModule
    schedule: Schedule = field(default_factory=Schedule)
    progress: Callable[[str], None] | None = None
    steps: int = 0
    norms_frozen: bool = False
    observers_frozen: bool = False
    seen: list[tuple[Any, ...]] = field(default_factory=list)  # inputs of the first calls of the model
    warnings: tuple[str, ...] = ()
    _shown: int = -1

    def step(self, loss: torch.Tensor | float, done: int, total: int) -> None:
        """Report that `done` of `total` steps are finished: checks the loss, freezes what is due, reports progress."""
        if total < 1 or not 0 <= done <= total:
            raise OptionError(f"step {done} of {total}", where=STAGE, hint="count steps from 1 to their total")
        value = float(loss.detach()) if isinstance(loss, torch.Tensor) else float(loss)
        if not math.isfinite(value):
            raise OpenNeutronError(
                f"the loss is {value} at step {done} of {total}", where=STAGE,
                hint="lower the learning rate, or look for a division by zero in the loss",
            )  # fmt: skip
        self.steps = done
        part = done / total
        if part >= self.schedule.freeze_norms:
            self.norms_frozen = True
            freeze_norms(self.model)
        if part >= self.schedule.freeze_observers and not self.observers_frozen:
            self.observers_frozen = True
            freeze_observers(self.model)
        percent = 100 * done // total
        if self.progress is not None and percent != self._shown:
            self._shown = percent
            self.progress(f"training: {percent} %, loss {value:.4f}")


TrainFunction = Callable[[GraphModule, Training], Any] | Callable[[GraphModule], Any]


def freeze_norms(model: GraphModule) -> None:
    """Freeze the running statistics of batch norms; has no effect the second time.

    Called again after each step, because `model.train()` in the user's loop would thaw them.
    """
    changed = False
    for node in model.graph.nodes:
        if operator_name(node) == _NORM and node.args[_TRAINING_ARGUMENT]:
            node.update_arg(_TRAINING_ARGUMENT, False)
            changed = True
    if changed:
        model.recompile()


def freeze_observers(model: GraphModule) -> None:
    """Keep every scale and zero point as it is."""
    from torchao.quantization.pt2e.fake_quantize import FakeQuantizeBase

    for module in model.modules():
        if isinstance(module, FakeQuantizeBase):
            module.disable_observer()


def run_training(
    model: GraphModule, train: TrainFunction, schedule: Schedule, progress: Callable[[str], None] | None = None
) -> Training:
    """Call the user's train function on a prepared model; its exception becomes one sentence that names the stage."""
    training = Training(model, schedule, progress)
    arguments: tuple[Any, ...] = (model, training) if _takes_two(train) else (model,)
    before = {name: one.detach().clone() for name, one in model.named_parameters()}
    watch = model.register_forward_pre_hook(lambda _, given: _remember(training, given))
    try:
        train(*arguments)
    except OpenNeutronError:
        raise
    except Exception as error:
        raise OpenNeutronError(
            f"the train function failed: {type(error).__name__}: {error}", where=STAGE, hint="nothing was written"
        ) from error
    finally:
        watch.remove()
    _check_weights(model)
    if not training.seen:
        raise OpenNeutronError(
            "the train function never called the model, so that no range is known", where=STAGE,
            hint="call the model it is given on training data: model(inputs)",
        )  # fmt: skip
    if before and all(torch.equal(one, before[name]) for name, one in model.named_parameters()):
        training.warnings = (
            "training changed no weight, so the network is only quantized: give the optimizer the parameters of the model that "
            "the train function gets, call loss.backward() and optimizer.step(), and a learning rate above 0",
        )
    return training


def _remember(training: Training, given: tuple[Any, ...]) -> None:
    """Keep the inputs of the first calls: the program is compared with the trained network on them."""
    if len(training.seen) < SAMPLES:
        training.seen.append(copy_tensors(given))


def _takes_two(train: TrainFunction) -> bool:
    try:
        inspect.signature(train).bind(None, None)
    except (TypeError, ValueError):
        return False
    return True


def _check_weights(model: GraphModule) -> None:
    for name, parameter in model.named_parameters():
        if not torch.isfinite(parameter).all():
            raise OpenNeutronError(
                f"training left {name} with values that are not finite", where=STAGE, hint="lower the learning rate"
            )
