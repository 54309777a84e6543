"""Every byte of real microcode changed, the checksum made right again, under the address and undefined-behaviour
sanitizers: nothing crashes, nothing leaves its buffers, and enough mutants reach execution for that to mean something.
Every address that leaves its region by an element or more is refused."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openneutron.convert import convert
from openneutron.litert.graph import DType
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.microcode.graph_op import blocks_of, is_graph_op
from openneutron.options import Options
from tests import tiny
from tests.golden import ModelMaker
from tests.stateful import Lstm, Svdf

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "sanitize"  # the folder of `make test-c`, so that nothing is compiled twice
INT8, INT32 = DType.INT8, DType.INT32
RANDOM_MUTANTS = 2000


@pytest.fixture(scope="module")
def mutate() -> Path:
    """The harness, built with the sanitizers."""
    tools = Path(sys.executable).parent
    ninja = next(str(path) for path in (tools / "ninja", shutil.which("ninja")) if path and Path(path).exists())
    cmake = next(str(path) for path in (tools / "cmake", shutil.which("cmake")) if path and Path(path).exists())
    configure = ["-DCMAKE_BUILD_TYPE=Debug", "-DOPENNEUTRON_SANITIZE=ON", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
    _run([cmake, "-S", str(ROOT), "-B", str(BUILD), "-G", "Ninja", *configure])
    _run([cmake, "--build", str(BUILD), "--target", "mutate"])
    return BUILD / "tests" / "c" / "mutate"


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-8000:]}"
    return done.stdout


def _windows() -> bytes:
    """Kernels with windows or weights, each on inputs of its own."""
    m = ModelMaker(np.random.default_rng(3))
    x = m.input((1, 5, 5, 4), INT8, 0.05, 3)
    w = m.constant(m.rng.integers(-127, 128, (1, 3, 3, 4)), INT8, 0.01, 0)
    b = m.constant(m.rng.integers(-99, 99, 4), INT32, 0.0005, 0)
    window = {"stride_w": 1, "stride_h": 1, "padding": "SAME"}
    m.op("DEPTHWISE_CONV_2D", [x, w, b], m.output((1, 5, 5, 4), INT8, 0.1, 0), depth_multiplier=1, **window)
    y = m.output((1, 5, 5, 4), INT8, 0.05, 3)
    m.op("AVERAGE_POOL_2D", [x], y, filter_width=3, filter_height=3, **window)
    wt = m.constant(m.rng.integers(-127, 128, (3, 2, 2, 4)), INT8, 0.01, 0)
    size = m.constant([1, 10, 10, 3], INT32)
    m.op(
        "TRANSPOSE_CONV", [size, wt, x], m.output((1, 10, 10, 3), INT8, 0.1, 0), stride_w=2, stride_h=2, padding="VALID"
    )
    a, c = m.input((2, 3, 4), INT8, 0.1, 0), m.input((2, 4, 5), INT8, 0.1, 0)
    m.op("BATCH_MATMUL", [a, c], m.output((2, 3, 5), INT8, 0.2, 1))
    return write_model(m.model())


def _elements() -> bytes:
    """Element-wise kernels, copies and reductions, each on inputs of its own."""
    m = ModelMaker(np.random.default_rng(4))
    shape = (1, 3, 4, 5)
    x, y = m.input(shape, INT8, 0.05, 3), m.input(shape, INT8, 0.04, -7)
    for code in ("ADD", "MUL", "SUB"):
        m.op(code, [x, y], m.output(shape, INT8, 0.1, 0))
    m.op("LOGISTIC", [x], m.output(shape, INT8, 1 / 256, -128))
    m.op("QUANTIZE", [x], m.output(shape, DType.UINT8, 0.07, 100))
    z = m.input(shape, INT8, 0.05, 3)
    m.op("MAXIMUM", [x, z], m.output(shape, INT8, 0.05, 3))
    m.op("PAD", [x, m.constant([[0, 0], [1, 2], [0, 1], [0, 0]], INT32)], m.output((1, 6, 5, 5), INT8, 0.05, 3))
    m.op(
        "TRANSPOSE",
        [x, m.constant([0, 3, 1, 2], INT32)],
        m.output((1, 5, 3, 4), INT8, 0.05, 3),
    )
    m.op("MEAN", [x, m.constant([1, 2], INT32)], m.output((1, 1, 1, 5), INT8, 0.05, 3), keep_dims=True)
    m.op("RESIZE_NEAREST_NEIGHBOR", [x, m.constant([6, 8], INT32)], m.output((1, 6, 8, 5), INT8, 0.05, 3))
    m.op("RESIZE_BILINEAR", [x, m.constant([6, 8], INT32)], m.output((1, 6, 8, 5), INT8, 0.05, 3))
    slope = m.constant(m.rng.integers(-127, 128, (1, 1, 5)), INT8, 0.01, 0)
    m.op("PRELU", [x, slope], m.output(shape, INT8, 0.05, 0))
    begin, size = m.constant([0, 1, 0, 2], INT32), m.constant([1, 2, 4, 3], INT32)
    m.op("SLICE", [x, begin, size], m.output((1, 2, 4, 3), INT8, 0.05, 3))
    return write_model(m.model())


def _wide() -> bytes:
    """Kernels with 16-bit activations, each on inputs of its own."""
    m = ModelMaker(np.random.default_rng(5))
    shape = (1, 4, 4, 4)
    x, y = m.input(shape, DType.INT16, 1e-4, 0), m.input(shape, DType.INT16, 2e-4, 0)
    b = m.constant(m.rng.integers(-99, 99, 4), DType.INT64, 1e-6, 0)
    w = m.constant(m.rng.integers(-127, 128, (4, 3, 3, 4)), INT8, 0.01, 0)
    window = {"stride_w": 1, "stride_h": 1, "padding": "SAME"}
    m.op("CONV_2D", [x, w, b], m.output(shape, DType.INT16, 3e-4, 0), **window)
    w = m.constant(m.rng.integers(-127, 128, (1, 3, 3, 4)), INT8, 0.01, 0)
    m.op("DEPTHWISE_CONV_2D", [x, w, b], m.output(shape, DType.INT16, 3e-4, 0), depth_multiplier=1, **window)
    for code in ("ADD", "MUL"):
        m.op(code, [x, y], m.output(shape, DType.INT16, 3e-4, 0))
    m.op("LOGISTIC", [x], m.output(shape, DType.INT16, 1 / 32768, 0))
    m.op("SOFTMAX", [x], m.output(shape, DType.INT16, 1 / 32768, 0), beta=1.0)
    m.op("QUANTIZE", [x], m.output(shape, INT8, 0.02, 5))
    return write_model(m.model())


CASES: dict[str, tuple[Callable[[], bytes], dict[str, Any]]] = {
    "convnet_streamed": (tiny.convnet, {"target": "imxrt700", "fit_bytes": 600}),  # whole tensors need more: a LOOP
    "convnet_prefetch_profile": (
        tiny.convnet,
        {"target": "mcxn94x", "fetch_constants_to_sram": True, "use_profiling": True},
    ),
    "convnet_neutron_s": (tiny.convnet, {"target": "imx95"}),
    "windows": (_windows, {"target": "mcxn94x"}),
    "elements": (_elements, {"target": "imxrt700"}),
    "wide": (_wide, {"target": "imxrt700"}),
    "lstm": (Lstm(steps=2, normalize=True, peephole=True, project=True).model, {"target": "imxrt700"}),
    "svdf": (Svdf().model, {"target": "mcxn94x"}),
}
_PLAIN = ("code_weights", "pack_code")  # every field a word of its own, for mutants that are out of range


@pytest.mark.parametrize(("case", "passes_off"), [*((case, _PLAIN) for case in CASES), ("windows", ())])
def test_no_mutant_leaves_its_buffers(case: str, passes_off: tuple[str, ...], mutate: Path, tmp_path: Path) -> None:
    make, options = CASES[case]
    model = convert(make(), Options(**options, passes_off=passes_off))
    graph = read_model(model.model).main
    ops = [op for op in graph.operators if is_graph_op(op)]
    assert len(ops) == len(graph.operators) == 1, [
        f"{op.code}: {op.reason}" for op in model.report.operators if op.reason
    ]
    blocks = blocks_of(graph, ops[0], outputs=1)
    names = []
    for name in ("microcode", "weights", "kernels"):
        (tmp_path / name).write_bytes(getattr(blocks, name))
        names.append(str(tmp_path / name))
    printed = _run([str(mutate), *names, str(RANDOM_MUTANTS)])
    print(f"\n{case}: {len(blocks.microcode)} bytes of microcode\n{printed}")
    counts = {
        what: (int(no), int(yes)) for what, no, yes in re.findall(r"(.+): (\d+) rejected, (\d+) reached", printed)
    }
    assert counts["unchanged"] == (0, 1)
    assert sum(counts["single bytes"]) > 8 * len(blocks.microcode)
    for what in ("single bytes", "several at once"):
        rejected, executed = counts[what]
        assert rejected > 0 and executed > 0, f"{what} prove nothing: {printed}"
    assert counts["weights"][1] > 0
    if not passes_off:
        return  # coded weights may be refused, and packed words have no place of their own
    assert counts["weights"][0] == 0
    rejected, executed = counts["out of range"]  # three or more for each operand of each call
    assert rejected >= 6 * len(model.report.kernels) and executed == 0
