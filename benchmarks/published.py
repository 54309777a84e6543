"""Published latencies and memory of models on a Neutron-C NPU, by NXP and users of its tools, and peers' figures.

Times are of whole models, including softmax, quantize and dequantize on the CPU. The cycle model is calibrated on all of them
and validated by leaving each one out. Machine and sources: docs/targets.md.
"""

from __future__ import annotations

from dataclasses import dataclass

SDK = "NXP MCUXpresso SDK, readme of the eIQ Neutron example"
ZOO = "NXP eIQ model zoo"
LOG = "a user's log of NXP's example"


@dataclass(frozen=True)
class Point:
    """One published latency; `network` is a function of `benchmarks.board_networks`."""

    target: str
    network: str
    milliseconds: float
    source: str
    fetch_constants: bool = False  # weights in flash, copied to SRAM by the CPU


POINTS = (
    Point("mcxn94x", "resnet8", 6.31, ZOO),
    Point("mcxn94x", "ds_cnn", 3.329, ZOO),
    Point("mcxn94x", "autoencoder", 0.797, ZOO),
    Point("mcxn94x", "vww", 6.384, ZOO),
    Point("mcxn94x", "cifarnet", 7.13, LOG),
    Point("imxrt700", "cifarnet", 1.027, SDK),
    Point("imxrt700", "ds_cnn_s", 0.5855, f"{SDK}, middle of two versions (0.576 and 0.595)"),
    Point("imxrt700", "mobilenet_v1_025_128", 2.759, SDK),
    Point("imxrt700", "mobilenet_v1_1_224", 53.376, SDK, fetch_constants=True),
)

# Networks on the Cortex-M33 of mcxn94x alone (150 MHz, CMSIS-NN), from which the CPU model is fitted; NXP eIQ model
# zoo.
CPU_ONLY_MILLISECONDS = {"resnet8": 266.7, "ds_cnn": 62.0, "autoencoder": 5.6}

# Whole systems with an i.MX 95, so upper bounds only: the NPU's own time must not exceed them. Milliseconds.
IMX95_AT_MOST = {"mobilenet_v2": 3.17, "yolov5n": 13.7, "yolov8s_seg": 73.0}


@dataclass(frozen=True)
class Header:
    """The header of a file made by NXP's converter; `network` as above."""

    target: str
    network: str
    scratch_bytes: int
    weight_bytes: int
    microcode_bytes: int
    kernel_calls: int


HEADERS = (
    Header("mcxn94x", "cifarnet", 40_960, 91_992, 1_112, 8),
    Header("mcxn94x", "unpu_autoencoder", 448, 139_080, 680, 7),
    Header("mcxn94x", "unpu_nas", 98_304, 358_308, 2_008, 17),
    Header("mcxn94x", "unpu_resnet", 61_440, 257_192, 2_280, 23),
)

# TFLM's kTensorArenaSize on imxrt700, from readmes of NXP's SDK.
ARENA_BYTES = {
    "cifarnet": 44_768, "ds_cnn_s": 17_296, "mobilenet_v1_025_128": 149_184, "mobilenet_v1_1_224": 1_356_420,
}  # fmt: skip

CIFARNET_SCRATCH_BYTES = HEADERS[0].scratch_bytes

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
