"""Prediction intervals of a latency, from the errors that the model makes on models it was not fitted on.

`LEFT_OUT` has the error of each published latency when the constants are fitted without it. Their spread gives the half width
of a 95 % prediction interval for one more model (Student's t, normal errors of the logarithm). It grows where the time hangs on
constants that the published latencies hardly determine (`Belief.doubt` in `board/fit.py`), and with the share of the time spent
in kernels that none of them exercises. `benchmarks/calibrate.py` prints the errors; a test checks them.

Example:
    >>> interval(1.0, unexercised=0.0)
    (0.876, 1.142)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from openneutron.machine.targets import Target

# ln(model / published) of each point, fitted on the others, in the order of benchmarks/published.py.
LEFT_OUT: tuple[float, ...] = (0.103, -0.027, 0.083, -0.006, -0.050, 0.007, 0.078, -0.067, -0.011, 0.004, -0.064)
# Mean variance, of logarithms, that the constants left in those predictions: the errors contain so much of it already.
LEFT_OUT_DOUBT = 0.0182
# Student's t for 95 %, two-sided, by degrees of freedom.
_T95 = {3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 10: 2.23, 11: 2.20, 12: 2.18}
# Time in kernels, schedules or operators that no published latency exercises may be off by this factor (assumed).
UNEXERCISED_FACTOR = 1.5
# Kernels of the networks with published latencies, and CPU operators in them or in the CPU-only figures.
EXERCISED_KERNELS = frozenset({"conv2d", "depthwise_conv2d", "fully_connected", "avg_pool2d", "max_pool2d", "add"})
EXERCISED_OPERATORS = frozenset(
    {"SOFTMAX", "QUANTIZE", "DEQUANTIZE", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "RESHAPE"}
)


def spread(errors: Sequence[float], doubt: float = 0.0) -> float:
    """Return the half width, in logarithms, of the 95 % interval for a new point, given left-out errors.

    `doubt` is the variance that the constants leave in the point's logarithm.
    """
    count = len(errors)
    t = _T95[max(known for known in _T95 if known <= max(count, 3))]
    variance = sum(error * error for error in errors) / count * (1 + 1 / count)
    return t * math.sqrt(variance + max(doubt - LEFT_OUT_DOUBT, 0.0))


def interval(
    milliseconds: float, *, unexercised: float, errors: Sequence[float] = LEFT_OUT, doubt: float = 0.0
) -> tuple[float, float]:
    """Return the lower and upper end around an estimate; `unexercised` is a share of its time, 0 to 1.

    `errors` are left-out errors of the model that made the estimate, as logarithms; `doubt` is as in `spread`.
    """
    factor = math.exp(spread(errors, doubt) + unexercised * math.log(UNEXERCISED_FACTOR))
    return milliseconds / factor, milliseconds * factor


def unexercised_share(
    target: Target,
    kernel_cycles: Mapping[str, float],
    operator_cycles: Mapping[str, float],
) -> float:
    """Return the share of all cycles that no published latency covers: all of them on a target without any.

    `kernel_cycles` are NPU cycles by kernel, `operator_cycles` CPU cycles by LiteRT operator.
    """
    total = sum(kernel_cycles.values()) + sum(operator_cycles.values())
    if not total:
        return 0.0
    if not target.calibrated:
        return 1.0
    known = sum(c for k, c in kernel_cycles.items() if k in EXERCISED_KERNELS)
    known += sum(c for k, c in operator_cycles.items() if k in EXERCISED_OPERATORS)
    return 1 - known / total
