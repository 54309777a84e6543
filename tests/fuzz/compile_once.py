"""One random model through everything: compile, verify, prove, run, compare."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from openneutron.certify.prove import prove
from openneutron.convert import convert
from openneutron.errors import UnsupportedError
from openneutron.litert.graph import DType
from openneutron.machine import targets
from openneutron.options import Options
from openneutron.run.runner import LiteRtRunner, random_inputs
from tests.compiler.networks import Network, random_network
from tests.fuzz import torch_nets
from tests.stateful import Lstm, Svdf
from tests.streaming import running_sum, streaming_convnet

RUNS = 3  # runs of a model: state is kept between them
FOUND = Path("build") / "fuzz"  # where what fails is left
OPTIONS = ("target", "optimize", "fetch_constants_to_sram", "fit_bytes")


def check(source: bytes, options: Options, seed: int) -> None:
    """One model; what fails is left as a file, the smallest at last: `tests/fuzz/corpus` is where it should go."""
    try:
        compare(source, options, seed)
    except Exception:
        FOUND.mkdir(parents=True, exist_ok=True)
        (FOUND / "found.tflite").write_bytes(source)
        (FOUND / "found.json").write_text(json.dumps({name: getattr(options, name) for name in OPTIONS}) + "\n")
        raise


def compare(source: bytes, options: Options, seed: int) -> None:
    """Compile a model; where it fits, prove it and compare it with LiteRT."""
    try:
        compiled = convert(source, options).model
    except UnsupportedError:
        return  # a budget that nothing fits
    prove(compiled, source)
    ours, reference = LiteRtRunner(compiled), LiteRtRunner(source)
    for run in range(RUNS):
        inputs = random_inputs(reference.inputs, seed=seed + run)
        wanted, got = reference.run(inputs).outputs, ours.run(inputs).outputs
        for key, value in wanted.items():
            assert np.array_equal(value, got[key]), f"{key} differs in run {run}"


def _branches(data: st.DataObject) -> bytes:
    """A small network drawn step by step, which hypothesis can make smaller: branches, several outputs, batches."""
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 16)))
    batch = data.draw(st.integers(1, 3))
    size = data.draw(st.integers(3, 16))
    shape = (batch, size, size + data.draw(st.integers(0, 3)), data.draw(st.integers(1, 9)))
    wide = data.draw(st.booleans())
    net = Network(rng, shape, 0.0002 if wide else 0.05, dtype=DType.INT16 if wide else DType.INT8)
    tensors = [net.input]
    for _ in range(data.draw(st.integers(1, 7))):
        x = data.draw(st.sampled_from(tensors))
        tensors.append(_step(data, net, x, tensors))
    outputs = data.draw(st.lists(st.sampled_from(tensors[1:]), min_size=1, max_size=3, unique=True))
    return net.finish(*outputs)


def _step(data: st.DataObject, net: Network, x: int, tensors: list[int]) -> int:
    _, height, width, channels = net.shape(x)
    kind = data.draw(st.sampled_from(["conv", "depthwise", "add", "logistic", "requantize", "concat", "pad", "pool"]))
    if kind == "conv":
        return net.conv(
            x, data.draw(st.integers(1, 17)), data.draw(st.sampled_from([1, 3, 5])), data.draw(st.integers(1, 2))
        )
    if kind == "depthwise":
        return net.depthwise(x, data.draw(st.sampled_from([1, 3])), data.draw(st.integers(1, 2)))
    same = [one for one in tensors if net.shape(one) == net.shape(x)]
    if kind == "add":
        return net.add(x, data.draw(st.sampled_from(same)))
    if kind == "concat" and channels < 40:
        return net.concat([x, x], data.draw(st.integers(1, 3)))
    if kind == "pad":
        return net.pad(x, *(data.draw(st.integers(0, 2)) for _ in range(4)))
    if kind == "pool" and min(height, width) >= 2:
        return net.max_pool(x)
    if kind == "requantize":
        return net.requantize(
            x, data.draw(st.floats(0.02, 0.2)) / (256 if net.wide else 1), data.draw(st.integers(-20, 20))
        )
    return net.logistic(x)


def _stateful(data: st.DataObject) -> bytes:
    """A model that keeps something from run to run: variables, an LSTM, an SVDF."""
    kind = data.draw(st.sampled_from(["stream", "sum", "lstm", "svdf"]))
    small = st.integers(1, 12)
    if kind == "stream":
        return streaming_convnet(first=data.draw(st.integers(-128, 127)))
    if kind == "sum":
        first = data.draw(st.tuples(*[st.integers(-128, 127)] * 4))
        return running_sum(first=first, through_cpu=data.draw(st.booleans()))
    batch, seed = data.draw(st.integers(1, 3)), data.draw(st.integers(0, 1 << 16))
    if kind == "svdf":
        return Svdf(
            batch, data.draw(small), data.draw(small), data.draw(st.integers(1, 3)), data.draw(small), seed
        ).model()
    cells, flags = data.draw(small), [data.draw(st.booleans()) for _ in range(5)]
    outputs = data.draw(small) if flags[4] else cells
    return Lstm(
        batch, data.draw(small), data.draw(small), cells, outputs, seed, time_major=flags[0], coupled=flags[1],
        peephole=flags[2] and outputs == cells, normalize=flags[3], project=flags[4],
    ).model()  # fmt: skip


def compile_once(data: st.DataObject) -> None:
    """One LiteRT graph for a random target, level and budget."""
    number = data.draw(st.integers(0, 1 << 16))
    kind = data.draw(st.sampled_from(["branches", "network", "wide network", "stateful"]))
    if kind == "branches":
        source = _branches(data)
    elif kind == "stateful":
        source = _stateful(data)
    else:
        source = random_network(number, DType.INT16 if kind == "wide network" else DType.INT8)[0]
    options = Options(
        target=data.draw(st.sampled_from(targets.names())),
        optimize=data.draw(st.sampled_from(["fast", "default"])),
        fetch_constants_to_sram=data.draw(st.booleans()),
        fit_bytes=data.draw(st.one_of(st.none(), st.integers(200, 60_000))),
    )
    check(source, options, number)


def torch_once(seed: int) -> None:
    """One PyTorch network for a random target, level and budget: compiled, proved delegate by delegate, and run."""
    import torch

    import openneutron
    from openneutron.certify.program import prove_program

    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    kinds = (torch_nets.branches, torch_nets.recurrent, torch_nets.streaming)
    module, inputs = kinds[int(rng.integers(len(kinds)))](rng)
    names = targets.names()
    budget = int(rng.integers(2_000, 60_000)) if rng.integers(2) else None
    try:
        program = openneutron.compile(
            module, inputs, calibration=[inputs], target=names[int(rng.integers(len(names)))], dump_intermediates=True,
            optimize=("fast", "default")[int(rng.integers(2))], fetch_constants_to_sram=bool(rng.integers(2)),
            activations=("int8", "int16")[int(rng.integers(2))], fit_bytes=budget,
        )  # fmt: skip
    except UnsupportedError:
        return  # a budget that nothing fits

    def part(name: str) -> bytes:
        found = program.intermediates[name]
        return found.encode() if isinstance(found, str) else found

    prove_program(program.data, part)
    for _ in range(RUNS):
        program.run(*inputs)
