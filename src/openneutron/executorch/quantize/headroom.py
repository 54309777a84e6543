"""Observers of another range than the values have: headroom for 16-bit activations and for states, a part for a table."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch.fx import GraphModule
from torchao.quantization.pt2e.observer import MinMaxObserver

from openneutron.executorch.fx import changes, is_changed

# One extra bit costs 6 of the 90 dB that 16 bits have, but keeps values beyond those of the calibration data. States
# that a network carries from call to call grow beyond what a few samples show.
HEADROOM = 2.0


class HeadroomObserver(MinMaxObserver):  # type: ignore[misc,unused-ignore]
    """Records the smallest and the largest value and adds headroom.

    Example:
        >>> HeadroomObserver.with_args(eps=2.0**-28)
    """

    def calculate_qparams(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return scale and zero point; called by torchao."""
        scale, zero_point = super().calculate_qparams()
        return scale * HEADROOM, zero_point


class PartObserver(MinMaxObserver):  # type: ignore[misc,unused-ignore]
    """Records the largest value, and has a scale for a part of the range from 0 to it.

    Example:
        >>> PartObserver.with_args(part=1 / 32)
    """

    def __init__(self, *args: Any, part: float, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.part = part

    def calculate_qparams(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return scale and zero point; called by torchao."""
        largest = self.max_val.clamp(min=0.0) * self.part
        scale = torch.clamp(largest / (self.quant_max - self.quant_min), min=self.eps)
        return scale, torch.full_like(scale, self.quant_min, dtype=torch.int64)


def widen_states(prepared: GraphModule, times: float) -> int:
    """Let the observers of states find `times` the range they saw; returns how many there are.

    Example:
        >>> widen_states(prepared, 4.0)
    """
    found: dict[int, Any] = {}
    for node in prepared.graph.find_nodes(op="get_attr"):
        if not is_changed(node):
            continue
        written = [user.args[1] for user in node.users if changes(user, node)]
        for one in (*node.users, *written):
            if isinstance(one, torch.fx.Node) and one.op == "call_module":
                observer = prepared.get_submodule(str(one.target))
                found[id(observer)] = observer
    for observer in found.values():
        observer.calculate_qparams = partial(_widen_scale, observer.calculate_qparams, times)
    return len(found)


def _widen_scale(parameters: Any, times: float) -> tuple[torch.Tensor, torch.Tensor]:
    scale, zero_point = parameters()
    return scale * times, zero_point
