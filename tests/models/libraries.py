"""Networks of timm and torchvision by name, with random weights.

The torchvision wheel of the package index is built for CUDA. Beside a torch without it its C++ operators are missing and
its import ends with "operator torchvision::nms does not exist". Classification needs none of them, so their names are
declared first.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIST = Path(__file__).with_name("networks.txt")
_DECLARED: list[Any] = []  # a library's declarations live as long as the object


@dataclass(frozen=True)
class Network:
    """One line of the list."""

    library: str
    name: str
    parameters: int
    pixels: int

    @property
    def key(self) -> str:
        """What tells it from the others."""
        return f"{self.library} {self.name}"


def networks() -> list[Network]:
    """The list, the cheapest first."""
    lines = [line.split() for line in LIST.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    return [Network(library, name, int(parameters), int(pixels)) for library, name, parameters, pixels in lines]


def make(network: Network) -> Any:
    """The network in evaluation mode, the same weights every time."""
    import torch

    declare_operators()
    torch.manual_seed(0)
    if network.library == "timm":
        import timm

        return timm.create_model(network.name).eval()
    from torchvision import models

    extra: dict[str, Any] = {"aux_logits": False, "init_weights": True} if network.name == "googlenet" else {}
    return getattr(models, network.name)(weights=None, **extra).eval()


def declare_operators() -> None:
    """Let torchvision be imported where its C++ operators cannot be loaded."""
    import torch

    if _DECLARED or hasattr(torch.ops.torchvision, "nms"):
        return
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _DECLARED.append(library)
