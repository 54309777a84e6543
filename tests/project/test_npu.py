"""What surrounds a file of NXP's converter: resolver, arena, expected outputs, and refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import openneutron
from openneutron.errors import OptionError
from openneutron.litert import DType, GraphBuilder
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.project import boards, make
from openneutron.project.npu import check_npu_sizes, npu_model, resolver_methods
from openneutron.run.runner import LiteRtRunner
from tests import tiny
from tests.compat.nxp_file import converted
from tests.project.npu import Pair, pair


@pytest.fixture
def made(tmp_path: Path) -> Pair:
    return pair(tmp_path)


def test_the_exact_outputs_are_those_of_the_source(made: Pair) -> None:
    npu = made.npu()
    reference = LiteRtRunner(tiny.convnet())
    for inputs, outputs in zip(npu.inputs, npu.exact, strict=True):
        wanted = reference.run(list(inputs)).outputs.values()
        assert [one.tobytes() for one in outputs] == [one.tobytes() for one in wanted]
    assert [one.shape for one in npu.silicon[0]] == [one.shape for one in npu.exact[0]]


def test_the_resolver_has_what_is_left_outside(made: Pair) -> None:
    assert made.npu().operators == ("Softmax",)
    graph = read_model(tiny.convnet(), source="convnet").main
    assert resolver_methods(graph, "convnet") == ("Conv2D", "FullyConnected", "MaxPool2D", "Reshape", "Softmax")


def test_an_operator_that_tflm_lacks_is_refused() -> None:
    g = GraphBuilder()
    x, y = g.tensor("x", (1, 4), DType.FLOAT32), g.tensor("y", (1, 4), DType.FLOAT32)
    g.op("RELU_N1_TO_1", [x], [y])
    graph = read_model(write_model(g.finish([x], [y])), source="x").main
    with pytest.raises(OptionError, match="TensorFlow Lite Micro has no operator for RELU_N1_TO_1"):
        resolver_methods(graph, "x")


def test_the_arena_has_room_for_the_plan(made: Pair) -> None:
    """Input, logits, output and 256 bytes of scratch at least, in whole KiB."""
    assert made.npu().arena_bytes % 1024 == 0
    assert made.npu().arena_bytes >= 192 + 256 + 16 + 16


def test_files_of_another_kind_are_refused(made: Pair) -> None:
    def read(data: bytes, source: Path = made.source) -> None:
        npu_model(data, "npu", source, boards.load("frdmmcxn947"), inputs=[], count=1, seed=0)

    with pytest.raises(OptionError, match="NXP's converter did not make it"):
        read(tiny.convnet())
    with pytest.raises(OptionError, match="NXP's converter did not make it"):
        read(openneutron.compile(tiny.convnet()).data)
    with pytest.raises(OptionError, match=r"give both as .tflite"):
        read(b"something else")
    other = write_model(converted(read_model(tiny.sandwich(), source="sandwich")))
    with pytest.raises(OptionError, match="inputs and outputs are not those of"):
        read(other)


def test_what_does_not_fit_the_npus_memory_is_refused(made: Pair) -> None:
    npu = made.npu()
    check_npu_sizes(npu, boards.load("mimxrt700evk"))
    large = np.zeros(2_000_000, np.int8).tobytes()
    for board, less in (("mimxrt700evk", "RAM for the model"), ("frdmmcxn947", "flash")):
        with pytest.raises(OptionError, match=f"{board}: NXP's build lacks .* bytes of {less}"):
            check_npu_sizes(type(npu)(large, (), 1024, npu.inputs, npu.exact, npu.silicon), boards.load(board))
    with pytest.raises(OptionError, match="RAM for the arena"):
        check_npu_sizes(type(npu)(b"", (), 1 << 20, npu.inputs, npu.exact, npu.silicon), boards.load("mimxrt700evk"))
    with pytest.raises(OptionError, match=r"no build with NXP's library is made for it.*frdmmcxn947"):
        made.npu("mimxrt2660evk")


def test_it_is_for_platforms_that_have_the_library(made: Pair) -> None:
    with pytest.raises(OptionError, match="no part of a bare-metal project"):
        make(made.source, platform="cmake", board="frdmmcxn947", npu=made.converted)
    with pytest.raises(OptionError, match="made of a LiteRT model"):
        make("cifarnet", platform="zephyr", board="frdmmcxn947", npu=made.converted)
    with pytest.raises(OptionError, match=r"NXP's converter made it.*--npu-model"):
        make(made.converted, platform="zephyr", board="frdmmcxn947")


def test_a_file_for_another_chip_is_refused(made: Pair) -> None:
    model = read_model(made.converted.read_bytes(), source="npu")
    model.description = "Converted with eIQ neutron-converter 1.2.0 for NXP MCX N94x MCU target."
    made.converted.write_bytes(write_model(model))
    assert made.npu("frdmmcxn947").operators == ("Softmax",)
    with pytest.raises(OptionError, match=r"converted for mcxn94x, and the NPU of mimxrt700evk is that of imxrt700"):
        made.npu("mimxrt700evk")
