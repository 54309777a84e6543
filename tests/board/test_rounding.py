"""The board's rounding: multipliers of 16 bits, halves away from zero, whatever the schedule."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.board_networks import BOARD_NETWORKS
from benchmarks.networks import Layers
from openneutron.board.rounding import check_rounding, silicon_file, silicon_scale
from openneutron.cli.main import run
from openneutron.convert import convert
from openneutron.errors import FormatError, OptionError
from openneutron.litert.read import read_model
from openneutron.options import Options
from openneutron.run.runner import LiteRtRunner, random_inputs


@pytest.mark.parametrize(
    ("real", "word"), [(0.5, (1 << 15, 0)), (0.25, (1 << 15, 1)), (1 - 2**-24, (0xFFFF, 0)), (0.3, (39321, 1))]
)
def test_a_scale_word_is_the_mantissa_cut_off(real: float, word: tuple[int, int]) -> None:
    assert silicon_scale(real) == word
    mantissa, shift = word
    assert mantissa * 2.0 ** -(16 + shift) <= real < (mantissa + 1) * 2.0 ** -(16 + shift)


def _half_away(value: float) -> int:
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def test_a_layer_is_rounded_once_and_halves_go_away_from_zero() -> None:
    net = Layers((1, 1, 1, 64))
    data = net.finish(net.conv(net.input, 32, 1, act="NONE"))
    graph = read_model(data).main
    (op,) = graph.operators
    x, w, b = (graph.tensors[index] for index in op.inputs)
    y = graph.tensors[op.outputs[0]]
    board = LiteRtRunner(silicon_file(convert(data, Options()).model, where="model"), source="model")
    (values,) = random_inputs(board.inputs, seed=3)
    assert w.data is not None and b.data is not None
    assert x.quantization and w.quantization and y.quantization
    sums = w.data.reshape(32, 64).astype(np.int64) @ values.reshape(64).astype(np.int64) + b.data
    real = x.quantization.scale[0] * w.quantization.scale[0] / y.quantization.scale[0]
    mantissa, shift = silicon_scale(real)
    expected = [max(-128, min(127, _half_away(int(s) * mantissa / 2.0 ** (16 + shift)))) for s in sums]
    (got,) = board.run([values]).outputs.values()
    assert got.reshape(-1).tolist() == expected


@pytest.mark.parametrize("network", ["unpu_resnet", "ds_cnn"])
def test_every_schedule_and_target_gives_the_same_values(network: str) -> None:
    data = BOARD_NETWORKS[network]()
    found = []
    for options in (
        Options(),
        Options(optimize="fast"),
        Options(fetch_constants_to_sram=True),
        Options(target="imx95"),
    ):
        runner = LiteRtRunner(silicon_file(convert(data, options).model, where=network), source=network)
        found.append(next(iter(runner.run(random_inputs(runner.inputs, seed=1)).outputs.values())))
    assert all(np.array_equal(found[0], other) for other in found[1:])


def test_a_model_that_is_not_compiled_is_refused() -> None:
    with pytest.raises(FormatError, match="nothing in this model is compiled"):
        silicon_file(BOARD_NETWORKS["cifarnet"](), where="cifarnet.tflite")
    with pytest.raises(FormatError, match=r"only compiled \.tflite and \.pte"):
        silicon_file(b"nothing", where="file")


def test_an_unknown_rounding_names_the_known_ones() -> None:
    with pytest.raises(OptionError, match="--rounding"):
        check_rounding("up")


def test_the_commands_take_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, compiled = tmp_path / "net.tflite", tmp_path / "out.tflite"
    model.write_bytes(BOARD_NETWORKS["ds_cnn"]())
    compiled.write_bytes(convert(model.read_bytes(), Options()).model)
    assert run(["run", str(compiled), "--rounding", "silicon"]) == 0
    assert run(["verify", str(model), "--rounding", "silicon"]) == 1  # some values are a step away from LiteRT's
    assert run(["verify", str(compiled), "--reference", str(model), "--rounding", "silicon"]) == 1
    capsys.readouterr()
    assert run(["compare", str(compiled), str(model), "--rounding", "silicon"]) == 0
    assert "outputs off by silicon's rounding" in capsys.readouterr().out
    assert run(["run", str(compiled), "--rounding", "up"]) == 2
    x, y = np.zeros((4, 49, 10, 1), np.int8), np.zeros(4, np.int64)
    np.savez(tmp_path / "data.npz", x=x, y=y)
    capsys.readouterr()
    assert run(["evaluate", str(model), "--data", str(tmp_path / "data.npz"), "--rounding", "silicon"]) == 0
    assert "silicon" in capsys.readouterr().out


def test_a_pytorch_program_runs_with_it() -> None:
    import dataclasses

    import torch

    import openneutron

    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(16, 16, 3)
    ).eval()
    x = torch.rand(1, 3, 16, 16)
    program = openneutron.compile(model, (x,), calibration=[(x,)])
    board = dataclasses.replace(program, data=silicon_file(program.data, where="model.pte"))
    (exact,), (silicon,) = program.run(x), board.run(x)
    step = (exact - silicon).abs()[exact != silicon]
    assert exact.shape == silicon.shape and len(program.data) == len(board.data)
    assert step.numel() < exact.numel() / 4
