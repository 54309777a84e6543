"""Families of LiteRT operators that several stages must agree on."""

from __future__ import annotations

import math
from typing import Final

# Operators that only rename dimensions: the bytes stay as they are.
VIEWS: Final = frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS"})

# Clamping activations as operators of their own, with their real bounds.
CLAMPS: Final[dict[str, tuple[float, float]]] = {
    "RELU": (0.0, math.inf),
    "RELU6": (0.0, 6.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
    "RELU_0_TO_1": (0.0, 1.0),
}

# Those that other operators can fuse, by the numbers of the schema's ActivationFunctionType.
FUSED_ACTIVATIONS: Final = ("NONE", "RELU", "RELU_N1_TO_1", "RELU6")
