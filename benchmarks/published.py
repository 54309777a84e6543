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
    sdk: str = "2.x"  # version of NXP's converter; where none is named, by the size of its file


POINTS = (
    Point("mcxn94x", "resnet8", 6.31, ZOO),
    Point("mcxn94x", "ds_cnn", 3.329, ZOO),
    Point("mcxn94x", "autoencoder", 0.797, ZOO),
    Point("mcxn94x", "vww", 6.384, ZOO),
    Point("mcxn94x", "cifarnet", 7.13, LOG),
    Point("imxrt700", "cifarnet", 1.027, SDK),
    Point("imxrt700", "ds_cnn_s", 0.5855, f"{SDK}, middle of two versions (0.576 and 0.595)"),
    Point("imxrt700", "mobilenet_v1_025_128", 2.759, SDK),
    Point("imxrt700", "mobilenet_v1_1_224", 53.376, f"{SDK}, older version", fetch_constants=True),
    Point("imxrt700", "mobilenet_v1_1_224", 51.982, f"{SDK}, newer version", fetch_constants=True, sdk="3.1"),
    Point("imxrt700", "cifarnet_executorch", 1.072, f"{SDK} for ExecuTorch, INT8 inputs and outputs", sdk="3.1"),
)
# Not fitted: the same network in a file that is 9 KB larger, by Neutron software of which no converted file is public. It is a
# fifth faster, which says that 3.2 does something else; one time does not say what. How it was measured would make it slower:
# the runner keeps the program in memory that is not cached, its first run finds cold caches, and it too counts `execute` alone,
# at the same clock. Nor are there conversions to leave out: both programs take and give INT8.
UNEXPLAINED = (
    Point("imxrt700", "cifarnet_executorch", 0.848, f"{SDK} for ExecuTorch, modelrunner", sdk="3.2"),
)  # fmt: skip

# Networks on the Cortex-M33 of mcxn94x alone (150 MHz, CMSIS-NN), from which the CPU model is fitted; NXP eIQ model
# zoo.
CPU_ONLY_MILLISECONDS = {"resnet8": 266.7, "ds_cnn": 62.0, "autoencoder": 5.6}

# Layers of MLPerf Tiny's keyword spotting there, without its reshape: two versions of NXP's SDK. NXP's examples print them
# (MCUXpresso SDK, readme of the TFLM modelrunner on mcxn9xxevk). Microseconds.
KWS_LAYER_MICROSECONDS = {
    "2.x": (9275, 4379, 7492, 4374, 7494, 4374, 7490, 4380, 7491, 397, 24, 27),
    "newer": (8257, 4055, 7374, 3982, 7448, 3983, 7372, 3984, 7375, 350, 27, 25),
}

# Whole systems with an i.MX 95, so upper bounds only: the NPU's own time must not exceed them. Milliseconds.
IMX95_AT_MOST = {"mobilenet_v2": 3.17, "yolov5n": 13.7, "yolov8s_seg": 73.0}


@dataclass(frozen=True)
class Header:
    """The header of a file made by NXP's converter; `network` as above, `version` one of `openneutron.board.sdk`."""

    version: str
    target: str
    network: str
    scratch_bytes: int
    weight_bytes: int
    microcode_bytes: int
    kernel_calls: int  # 0: not known
    kernel_bytes: int = 0


# All public converted files, without those that differ in nothing shown here. Sources: benchmarks/ledger.toml.
HEADERS = (
    Header("1.0", "mcxn94x", "cifarnet", 40_960, 94_060, 1_048, 8),
    Header("1.2", "mcxn94x", "cifarnet", 40_960, 91_992, 1_112, 8),
    Header("3.0", "mcxn94x", "cifarnet", 40_960, 92_004, 1_224, 9),
    Header("1.2", "imxrt700", "cifarnet", 40_960, 96_752, 1_112, 8),
    Header("3.0", "imxrt700", "cifarnet", 40_960, 97_440, 1_368, 11),
    Header("3.1", "imxrt700", "cifarnet_executorch", 40_960, 96_064, 1_016, 8),
    Header("3.1", "imxrt2660", "cifarnet", 0, 73_712, 1_832, 0, 6_208),
    Header("3.2", "imxrt2660", "cifarnet", 0, 73_712, 1_848, 6, 7_136),
    Header("3.1", "imxrt2660", "mobilenet_v1_025_128", 0, 454_096, 8_728, 0, 8_160),
    Header("1.2", "mcxn94x", "ds_cnn_s", 16_000, 33_828, 1_544, 12),
    Header("1.2-preview", "imxrt700", "ds_cnn_s", 16_000, 31_456, 1_544, 12),
    Header("1.2", "imxrt700", "ds_cnn_s", 16_000, 28_896, 1_544, 12),
    Header("1.2-preview", "mcxn94x", "mobilenet_v1_025_128", 98_304, 483_408, 4_152, 30),
    Header("1.2", "mcxn94x", "mobilenet_v1_025_128", 98_304, 483_344, 4_152, 30),
    Header("1.2-preview", "imxrt700", "mobilenet_v1_025_128", 98_304, 500_320, 4_152, 30),
    Header("1.2", "imxrt700", "mobilenet_v1_025_128", 98_304, 500_360, 4_152, 30),
    Header("1.2", "mcxn94x", "yolo_face_detect", 122_880, 195_412, 7_088, 58),
    Header("1.2", "mcxn94x", "unpu_autoencoder", 448, 139_080, 680, 7),
    Header("1.2", "mcxn94x", "unpu_nas", 98_304, 358_308, 2_008, 17),
    Header("1.2", "mcxn94x", "unpu_resnet", 61_440, 257_192, 2_280, 23),
)


@dataclass(frozen=True)
class Arena:
    """TFLM's kTensorArenaSize of a model on imxrt700, from a readme of NXP's SDK, and the memory weights are fetched to."""

    network: str
    arena_bytes: int
    prefetch_bytes: int = 0
    sdk: str = "2.x"


ARENAS = (
    Arena("cifarnet", 44_768),
    Arena("ds_cnn_s", 17_296),
    Arena("mobilenet_v1_025_128", 149_184),
    Arena("mobilenet_v1_1_224", 1_356_420, 1_082_368),
    Arena("mobilenet_v1_1_224", 1_356_340, 1_082_368, sdk="3.1"),
)

# Planned memory and method allocator of NXP's ExecuTorch example with INT8 inputs and outputs (readme for frdmimxrt700).
EXECUTORCH_BYTES = {"cifarnet_executorch": (3_088, 3_513)}

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
