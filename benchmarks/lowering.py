"""From nn.Module to `.pte`: CPU seconds per stage, ours against ExecuTorch's XNNPACK path, both after training (PTQ).

    python benchmarks/lowering.py                       MobileNetV2 at 224x224, CifarNet and a chain of 500 nodes
    python benchmarks/lowering.py --models resnet20     others of the zoo
    python benchmarks/lowering.py --runs 3              medians of more runs
    python benchmarks/lowering.py --recurrent           recurrent networks against a convolutional one of as many parameters
    python benchmarks/lowering.py --per-node            whole reports: CPU seconds per operator against MobileNetV2's
    python benchmarks/lowering.py --detector            YOLOv8n at 640x640 for every target: CPU seconds and memory

Every run is a process of its own that first lowers a tiny network, so that importing and other first times are not counted;
contestants take turns. CPU seconds of one thread are compared, not wall time: a busy machine changes them little.
"ours" is what this project adds to torch, torchao and executorch: annotation, passes, partitioning, LiteRT, converter.
The last lines show how partitioning grows with the graph. Reports are those of `openneutron report`, with all its what-ifs
and measured layers; operators are those that the compiler counts, so that a layer unrolled over time has many. Networks of
timm take part where it is installed (`PYTHONPATH=build/models-site`, see `make test-models`).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

CHAIN, CHAIN_LAYERS = "chain", 100  # of five nodes each when quantized: convolution, ReLU, weights, and a value stored
MODELS = ("mobilenet_v2", "cifarnet", CHAIN)
SAMPLES = 4  # calibration inputs: enough for the observers, few enough to take little time
OURS, PEER = "ours", "XNNPACK"
GOALS = {"mobilenet_v2": 3.0, "cifarnet": 0.5}  # CPU seconds of our code
WHOLE_GOAL = 0.2  # share of the peer's total
RECURRENT, CONVOLUTIONAL, RECURRENT_GOAL = ("gru_kws", "lstm_kws"), "resnet8", 2.0
GROWTH, GROWTH_GOAL = (1000, 10_000), 12.0
REPORTED, PER_NODE_GOAL = ("mobilenet_v2", "yolov8n", "bilstm"), 2.0
REPORTED_TIMM = ("mobileone_s0", "edgenext_small")
DETECTOR, DETECTOR_GOALS = "yolov8n", (10.0, 1024.0)  # CPU seconds, MiB
OWN = "of it ours"


class Clock:
    """CPU seconds by name, of this process."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        began = time.process_time()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - began

    def count(self, owner: Any, name: str) -> None:
        """Add the time of every call of a function to our seconds."""
        original = getattr(owner, name)

        @wraps(original)
        def timed(*args: Any, **kwargs: Any) -> Any:
            with self(OWN):
                return original(*args, **kwargs)

        setattr(owner, name, staticmethod(timed) if _is_static(owner, name) else timed)


def _is_static(owner: Any, name: str) -> bool:
    return isinstance(vars(owner).get(name), staticmethod)


def lower_ours(
    model: Any, inputs: tuple[Any, ...], samples: Sequence[Any], clock: Clock, *, cpu: tuple[str, ...] = ()
) -> bytes:
    """Run the stages of `openneutron.compile` one by one; `cpu` are operators that stay on the CPU."""
    from openneutron.executorch.capture.export import export
    from openneutron.executorch.deliver.session import CompileSession
    from openneutron.executorch.partition.passes.keep_layers_whole import contract_layers
    from openneutron.executorch.program_lowering import lower_program
    from openneutron.executorch.quantize import NeutronQuantizer
    from openneutron.executorch.quantize import pt2e as steps
    from openneutron.executorch.stage_times import Stages
    from openneutron.options import Options

    with clock("export"):
        exported = export(model, inputs)
    with clock("prepare"):
        prepared = steps.prepare(exported, NeutronQuantizer())
    with clock("calibrate"):
        steps.calibrate(prepared, samples)
    with clock("convert"):
        quantized = steps.convert(prepared)
    with clock("export again"):
        session = CompileSession()
        program = export(contract_layers(quantized, session.bodies), inputs)
    with clock("lower and write"):
        options = Options(target="imxrt700", operators_not_to_delegate=cpu)
        return lower_program(program, options, Stages(), session=session).pte


def count_ours(clock: Clock) -> None:
    """Measure the time of our code inside other packages' stages."""
    from openneutron.executorch import program_lowering
    from openneutron.executorch.deliver.backend import NeutronBackend
    from openneutron.executorch.edge import delegate
    from openneutron.executorch.partition.partitioner import NeutronPartitioner
    from openneutron.executorch.quantize import NeutronQuantizer
    from openneutron.executorch.quantize import pt2e as steps

    clock.count(steps, "fold_batch_norm")
    for name in ("transform_for_annotation", "annotate"):
        clock.count(NeutronQuantizer, name)
    for name in ("partition", "ops_to_not_decompose", "transform_for_pre_decomposition", "finish"):
        clock.count(NeutronPartitioner, name)
    for name in ("without_in_place", "check", "direct_edge"):
        clock.count(delegate, name)
    clock.count(NeutronBackend, "preprocess")
    for name in ("make_islands_contiguous", "write_sealed"):
        clock.count(program_lowering, name)


def lower_xnnpack(model: Any, inputs: tuple[Any, ...], samples: Sequence[Any], clock: Clock) -> bytes:
    """Quantize and lower for XNNPACK as ExecuTorch's documentation does."""
    import executorch.kernels.quantized  # noqa: F401
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from executorch.exir import to_edge_transform_and_lower
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    with clock("export"):
        exported = torch.export.export(model, inputs)
    with clock("prepare"):
        quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
        prepared = prepare_pt2e(exported.module(), quantizer)
    with clock("calibrate"), torch.no_grad():
        for sample in samples:
            prepared(*sample)
    with clock("convert"):
        quantized = convert_pt2e(prepared)
    with clock("export again"):
        program = torch.export.export(quantized, inputs)
    with clock("lower and write"):
        edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
        return bytes(edge.to_executorch().buffer)


LOWER: dict[str, Callable[..., bytes]] = {OURS: lower_ours, PEER: lower_xnnpack}


def measure(contestant: str, name: str) -> dict[str, float]:
    """Return the CPU seconds per stage of one path over one model, in this process."""
    import torch

    from openneutron import zoo

    torch.set_num_threads(1)
    image = torch.linspace(-1, 1, 48).reshape(1, 3, 4, 4)
    tiny = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU()).eval()
    LOWER[contestant](tiny, (image,), [(image,)], Clock())
    clock = Clock()
    if contestant == OURS:
        count_ours(clock)
    given = chain() if name == CHAIN else _of_zoo(zoo.load(name))
    began = time.process_time()
    LOWER[contestant](*given, clock)
    return {**clock.seconds, "whole": time.process_time() - began}


def _of_zoo(model: Any) -> tuple[Any, tuple[Any, ...], Sequence[Any]]:
    return model.model, model.example_inputs, model.calibration[:SAMPLES]


def chain() -> tuple[Any, tuple[Any, ...], Sequence[Any]]:
    """Return a chain of convolutions, an input, and calibration data."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    layers = [one for _ in range(CHAIN_LAYERS) for one in (nn.Conv2d(8, 8, 3, padding=1), nn.ReLU())]
    images = [(torch.randn(1, 8, 16, 16),) for _ in range(SAMPLES)]
    return nn.Sequential(*layers).eval(), images[0], images


def measure_growth() -> dict[str, float]:
    """Return the CPU seconds of partitioning chains of quantized operators, by the number of nodes."""
    from benchmarks.chains import quantized_chain
    from openneutron.executorch import NeutronPartitioner, generate_neutron_compile_spec

    found: dict[str, float] = {}
    for nodes in GROWTH:
        program = quantized_chain(nodes)
        best = min(
            _partition_seconds(NeutronPartitioner(generate_neutron_compile_spec("imxrt700")), program) for _ in range(3)
        )
        found[str(nodes)] = best
    return found


def _partition_seconds(partitioner: Any, program: Any) -> float:
    began = time.process_time()
    partitioner.partition(program)
    return time.process_time() - began


def in_process(*words: str) -> dict[str, float]:
    """Run a measurement in a new process."""
    done = subprocess.run([sys.executable, __file__, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed: {done.stderr.strip()[-800:]}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def compare(name: str, runs: int) -> None:
    """Print one model's table."""
    taken: dict[str, list[dict[str, float]]] = {OURS: [], PEER: []}
    for _ in range(runs):
        for contestant, found in taken.items():
            found.append(in_process("--measure", contestant, name))
    medians = {
        contestant: {stage: statistics.median(one.get(stage, 0.0) for one in found) for stage in found[0]}
        for contestant, found in taken.items()
    }
    print(f"{name}, CPU seconds\n{'stage':18}{OURS:>10}{PEER:>10}{'ratio':>8}")
    for stage, peer in medians[PEER].items():
        own = medians[OURS][stage]
        print(f"{stage:18}{own:10.2f}{peer:10.2f}{own / max(peer, 1e-9):8.2f}")
    whole = medians[OURS]["whole"] / medians[PEER]["whole"]
    goal = f", goal {GOALS[name]}" if name in GOALS else ""
    print(
        f"{OWN}: {medians[OURS][OWN]:.2f} s{goal}; whole path {whole:.2f} × {PEER}'s, goal {WHOLE_GOAL}\n", flush=True
    )


def compare_recurrent(runs: int) -> None:
    """Print how much longer recurrent networks take than a convolutional one."""
    names = (CONVOLUTIONAL, *RECURRENT)
    taken: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(runs):
        for name in names:
            taken[name].append(in_process("--measure", OURS, name)["whole"])
    for name in RECURRENT:
        times = statistics.median(own / other for own, other in zip(taken[name], taken[CONVOLUTIONAL], strict=True))
        seconds = " s, ".join(f"{one} {statistics.median(taken[one]):.2f}" for one in (name, CONVOLUTIONAL))
        print(f"{seconds} s of CPU: {times:.2f} ×, goal {RECURRENT_GOAL}")


def compare_reports() -> None:
    """Print CPU seconds per operator of whole reports, relative to the first network."""
    names = (*REPORTED, *(REPORTED_TIMM if find_spec("timm") else ()))
    first = 0.0
    print(f"{'report of':18}{'CPU s':>8}{'operators':>11}{'ms each':>9}{'ratio':>7}  goal {PER_NODE_GOAL}")
    for name in names:
        found = in_process("--measure", "report", name)
        each = found["seconds"] / found["operators"]
        first = first or each
        print(
            f"{name:18}{found['seconds']:8.1f}{found['operators']:11,.0f}{each * 1e3:9.1f}{each / first:7.2f}",
            flush=True,
        )


def compare_targets() -> None:
    """Print the cost of compiling a detector for every target."""
    seconds, mib = DETECTOR_GOALS
    print(
        f"{DETECTOR} at 640x640, goals {seconds:.0f} s of CPU and {mib:.0f} MiB; before it: importing, a tiny compile"
    )
    print(f"{'target':12}{'CPU s':>8}{'with before':>13}{'peak MiB':>10}{'before':>8}")
    for target in ("imxrt700", "mcxn94x", "imx95"):
        found = in_process("--measure", "compile", DETECTOR, target)
        print(f"{target:12}{found['seconds']:8.1f}{found['whole']:13.1f}{found['mib']:10.0f}{found['mib before']:8.0f}",
              flush=True)  # fmt: skip


def _measured(kind: str, *rest: str) -> dict[str, float]:
    """Return the measurement that a child process was started for."""
    from benchmarks import reports

    if kind == "growth":
        return measure_growth()
    if kind == "report":
        return reports.measure_report(*rest)
    return reports.measure_compile(*rest) if kind == "compile" else measure(kind, *rest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(MODELS), metavar="NAME")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--recurrent", action="store_true")
    parser.add_argument("--per-node", action="store_true")
    parser.add_argument("--detector", action="store_true")
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(_measured(*given.measure)))
        return
    if given.per_node:
        compare_reports()
        return
    if given.detector:
        compare_targets()
        return
    if given.recurrent:
        compare_recurrent(given.runs)
        return
    for name in given.models:
        compare(name, given.runs)
    seconds = in_process("--measure", "growth")
    small, large = (seconds[str(nodes)] for nodes in GROWTH)
    print(f"partitioning {GROWTH[0]:,} nodes {small:.3f} s, {GROWTH[1]:,} nodes {large:.3f} s: "
          f"{large / small:.1f} ×, goal {GROWTH_GOAL}")  # fmt: skip


if __name__ == "__main__":
    main()
