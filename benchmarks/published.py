"""Latencies that NXP has published for models that run wholly on a Neutron NPU (softmax and dequantize on the CPU).

The cycle model is calibrated on some of these points and judged by the others. Machine and sources: docs/targets.md.
"""

from __future__ import annotations

from dataclasses import dataclass

SDK = "NXP MCUXpresso SDK, readme of the eIQ Neutron example"
ZOO = "NXP eIQ model zoo"


@dataclass(frozen=True)
class Point:
    """One published latency; `network` is a function of `benchmarks.networks`."""

    target: str
    network: str
    milliseconds: float
    source: str
    fetch_constants: bool = False  # weights in flash, copied to SRAM by the CPU
    calibrates: bool = True  # False: held out, the model only predicts it


# Held out: one small network and the only one whose weights are in flash, both on the array the other points do not have.
# With them the three points of mcxn94x fit a machine of 4x4 units and predict one of 8x8 at another clock.
POINTS = (
    Point("mcxn94x", "resnet8", 6.31, ZOO),
    Point("mcxn94x", "ds_cnn", 3.329, ZOO),
    Point("mcxn94x", "autoencoder", 0.797, ZOO),
    Point("imxrt700", "cifarnet", 1.027, SDK, calibrates=False),
    Point("imxrt700", "mobilenet_v1", 53.4, SDK, fetch_constants=True, calibrates=False),
)

# The same networks on the Cortex-M33 of mcxn94x alone (150 MHz, CMSIS-NN), for the size of the gain; same source.
CPU_ONLY_MILLISECONDS = {"resnet8": 266.7, "ds_cnn": 62.0, "autoencoder": 5.6}

# What NXP's converter made of its CifarNet example for mcxn94x: the header of the converted file in the same SDK.
CIFARNET_SCRATCH_BYTES = 40_960

# Vela 5.2 for Ethos-U55-64, SRAM only, `--optimise Size`: KiB of SRAM and its estimate of cycles on its own machine.
VELA_SIZE = {
    "cifarnet": (15.0, 305_308),
    "resnet8": (35.0, 355_163),
    "ds_cnn": (15.6, 137_709),
    "vww": (48.0, 354_232),
    "mobilenet_v2": (353.5, 11_233_643),
}

# What a row-by-row simulation of streamed schedules reached before this compiler existed, in KiB: at no more than 1.05x the
# cycles of the fastest schedule, and at any cycles.
GOALS = {
    "cifarnet": (13.0, 10.5),
    "resnet8": (23.5, 13.3),
    "ds_cnn": (9.9, 5.1),
    "vww": (46.5, 40.1),
    "mobilenet_v2": (268.7, 268.7),
}
