"""Export recurrent layers by tracing the first of their steps.

Replaces: `one_layer_rnn` and `one_layer_lstm` in torch's decompositions. torch.export keeps a recurrent layer as one
operator, but to learn the sizes of its results it walks through every step with fake tensors. All steps have the sizes
of the first.
Saves: see `python benchmarks/upstream.py`; the more steps, the more.
Knows: torch 2.13.
Otherwise: torch walks through every step.

Example:
    >>> with trace_one_step():
    ...     torch.export.export(model, inputs)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from importlib import import_module
from typing import Any
from unittest.mock import patch

import torch

from openneutron.executorch.upstream.names import FakeTensor
from openneutron.executorch.upstream.switch import Expected, replaces

_MODULE = "torch._decomp.decompositions"
_GIVEN = ("inp", "hidden", "params", "has_biases")


@replaces(
    "torch",
    Expected(_MODULE, "one_layer_rnn", (*_GIVEN, "hidden_fn", "reverse")),
    Expected(_MODULE, "one_layer_lstm", (*_GIVEN, "reverse")),
)
def trace_one_step() -> Iterator[None]:
    """Replace the functions of torch that walk through one direction of one layer."""
    torchs = import_module(_MODULE)
    with (
        patch.object(torchs, "one_layer_rnn", _first_step(torchs.one_layer_rnn)),
        patch.object(torchs, "one_layer_lstm", _first_step(torchs.one_layer_lstm)),
    ):
        yield


def _first_step(walk: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(walk)
    def layer(steps: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        count = steps.shape[0]
        if not isinstance(steps, FakeTensor) or not isinstance(count, int) or count < 2:
            return walk(steps, *args, **kwargs)
        first, last_state = walk(steps[:1], *args, **kwargs)
        return torch.cat((first, first.expand(count - 1, *first.shape[1:])), 0), last_state

    return layer
