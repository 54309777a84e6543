"""A small report with one of everything."""

from __future__ import annotations

from openneutron.report.model import Buffer, Event, Kernel, NodeVerdict, Operator, Report, Totals


def report() -> Report:
    return Report(
        target="imxrt700",
        converter="open",
        converter_version="0.1.0",
        source="small[1].pt",
        totals=Totals(
            macs=6400,
            cycles=250,
            milliseconds=0.00077,
            peak_bytes=1536,
            io_bytes=512,
            scratch_bytes=1000,
            prefetch_bytes=24,
            weight_bytes=640,
            microcode_bytes=400,
            operators_total=3,
            operators_converted=2,
            neutron_graphs=1,
        ),
        nodes=(
            NodeVerdict("conv", "aten.convolution", True, partition=0),
            NodeVerdict("a", "aten.sin", False, "operator sin has no kernel", "no_kernel", "use tanh"),
            NodeVerdict("b", "aten.sin", False, "operator sin has no kernel", "no_kernel", "use tanh"),
            NodeVerdict("c", "aten.<cos>", False, "type is [float32]", "dtype", ""),
        ),
        operators=(
            Operator(0, "CONV_2D", "conv", True, graph=0),
            Operator(1, "RELU", "relu", True, graph=0),
            Operator(2, "SIN", "a", False, "operator SIN has no kernel", "no_kernel", "use TANH"),
        ),
        kernels=(
            Kernel(0, 0, "conv2d", "conv", (0,), (1, 8, 8, 4), 6400, 2, 200, 100, 60, 40, 640),
            Kernel(1, 0, "lut", "relu", (1,), (1, 8, 8, 4), 0, 1, 50, 10, 35, 5, 0),
        ),
        events=(Event(0, 0, "array", "conv2d", 0, 8, 0, 200),),
        buffers=(Buffer(0, "conv", "scratch", 0, 256, 0, 1),),
        passes={"fuse_lut": 0},
        seconds={"export": 1.5, "compiler": 0.25},
        files={"small.pte": 2048},
        notes=("1 border copy of 256 bytes",),
    )
