"""One step: recurrent layers are exported with the first of their steps looked at, not all of them.

torch.export keeps a recurrent layer as one operator, but to learn the sizes of its results torch walks through every step
with tensors that have no data. All steps have the sizes of the first, so the others need no look. Other versions of torch,
which may not have these functions, are left as they are.

Example:
    >>> with one_step():
    ...     torch.export.export(model, inputs)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any
from unittest.mock import patch

import torch
from torch._decomp import decompositions
from torch._subclasses.fake_tensor import FakeTensor

_LAYERS = ("one_layer_rnn", "one_layer_lstm")  # of torch; one direction of one layer each


@contextmanager
def one_step() -> Iterator[None]:
    """Replace torch's walks; what was there comes back at the end."""
    with ExitStack() as replaced:
        for name in _LAYERS:
            walk = getattr(decompositions, name, None)
            if walk is not None:
                replaced.enter_context(patch.object(decompositions, name, _first_step(walk)))
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
