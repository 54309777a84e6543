"""Your own LiteRT file: compile it, check every bit against LiteRT's reference, and see where cycles and memory go.

    python examples/own_tflite.py model.tflite

Without a file it makes a small INT8 model first.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import openneutron as on
from openneutron.litert import DType, GraphBuilder
from openneutron.litert.write import write_model
from openneutron.run.runner import LiteRtRunner, random_inputs


def small_model() -> bytes:
    """Two convolutions and a softmax, with random weights."""
    rng = np.random.default_rng(0)
    g = GraphBuilder()
    image = g.tensor("image", (1, 24, 24, 3), DType.INT8, scale=1 / 128, zero_point=0)
    value, channels = image, 3
    for index, wanted in enumerate((16, 4)):
        weights = rng.integers(-127, 128, (wanted, 3, 3, channels))
        filters = g.tensor(f"filters{index}", weights.shape, DType.INT8, scale=0.004, data=weights)
        bias = g.tensor(f"bias{index}", (wanted,), DType.INT32, data=rng.integers(-500, 500, wanted))
        size = 24 >> (index + 1)
        made = g.tensor(f"conv{index}", (1, size, size, wanted), DType.INT8, scale=0.05, zero_point=-128)
        options = {"padding": "SAME", "stride_w": 2, "stride_h": 2, "fused_activation_function": "RELU"}
        g.op("CONV_2D", [value, filters, bias], [made], **options)
        value, channels = made, wanted
    scores = g.tensor("scores", (1, 6, 6, 4), DType.INT8, scale=1 / 256, zero_point=-128)
    g.op("SOFTMAX", [value], [scores], beta=1.0)
    return write_model(g.finish([image], [scores]))


def main(arguments: list[str]) -> int:
    source = Path(arguments[0]) if arguments else Path("small.tflite")
    if not arguments:
        source.write_bytes(small_model())

    program = on.compile(source, target="mcxn94x")
    program.save(f"{source.stem}_neutron.tflite")

    # The same inputs through our simulator and through LiteRT's reference kernels.
    ours, reference = LiteRtRunner(program.tflite), LiteRtRunner(source.read_bytes())
    inputs = random_inputs(reference.inputs, seed=0)
    pairs = zip(ours.run(inputs).outputs.items(), reference.run(inputs).outputs.values(), strict=True)
    differing = {name: int(np.count_nonzero(a != b)) for (name, a), b in pairs}
    print(f"elements that differ from LiteRT's reference: {differing}")

    totals = program.report.totals
    print(f"{totals.operators_converted} of {totals.operators_total} operators on the NPU")
    print(f"{totals.cycles:,} cycles estimated, {totals.milliseconds:.3f} ms; {totals.peak_bytes:,} bytes of memory")
    for kernel in sorted(program.report.kernels, key=lambda one: -one.cycles):
        print(f"  {kernel.cycles:8,} cycles  {kernel.kernel} {kernel.name}, bound by {kernel.bound_by}")
    return 1 if any(differing.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
