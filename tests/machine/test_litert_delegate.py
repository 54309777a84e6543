"""The external delegate in LiteRT's own interpreter: the bytes of `openneutron run`, and refusals with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType, load_delegate

import openneutron as on
from openneutron.convert import convert
from openneutron.litert import read_model, write_model
from openneutron.microcode.table import MAGIC
from openneutron.options import Options
from openneutron.run.runner import LiteRtRunner, random_inputs
from tests import tiny
from tests.compat import nxp_file
from tests.hostile.test_deadline import HOSTILE
from tests.run.test_runner import elu_between_adds

REFERENCE = OpResolverType.BUILTIN_REF


def interpreter(data: bytes, options: dict[str, str] | None = None) -> Interpreter:
    delegate = load_delegate(on.litert_delegate(), options)
    made = Interpreter(model_content=data, experimental_delegates=[delegate], experimental_op_resolver_type=REFERENCE)
    made.allocate_tensors()
    return made


def run(made: Interpreter, inputs: list[Any]) -> list[Any]:
    for detail, value in zip(made.get_input_details(), inputs, strict=True):
        made.set_tensor(detail["index"], value)
    made.invoke()
    return [made.get_tensor(detail["index"]) for detail in made.get_output_details()]


CASES = {
    "one graph": (tiny.convnet, {}),
    "graphs around the CPU": (tiny.sandwich, {}),
    "an output inside": (elu_between_adds, {}),
    "profiling": (tiny.convnet, {"use_profiling": True}),
    "weights copied first": (tiny.convnet, {"fetch_constants_to_sram": True}),
    "TCM": (tiny.convnet, {"target": "imx95"}),
    "another array": (tiny.sandwich, {"target": "mcxn94x"}),
}


@pytest.mark.parametrize("name", CASES)
def test_same_bytes_as_run(name: str) -> None:
    make, options = CASES[name]
    data = convert(make(), Options(**options)).model
    ours = LiteRtRunner(data)
    assert ours.neutron_graphs > 0
    made = interpreter(data)
    for seed in range(3):
        inputs = random_inputs(ours.inputs, seed=seed)
        found, expected = run(made, inputs), ours.run(inputs).outputs
        assert all(np.array_equal(a, b) for a, b in zip(found, expected.values(), strict=True))


def test_from_a_file_and_with_threads(tmp_path: Path) -> None:
    source = tiny.sandwich()
    path = tmp_path / "out.tflite"
    path.write_bytes(convert(source, Options()).model)
    delegate = load_delegate(on.litert_delegate(), {"threads": "2", "timeout": "30"})
    made = Interpreter(str(path), experimental_delegates=[delegate], experimental_op_resolver_type=REFERENCE)
    made.allocate_tensors()
    reference = LiteRtRunner(source)
    inputs = random_inputs(reference.inputs, seed=0)
    found, expected = run(made, inputs), reference.run(inputs).outputs
    assert all(np.array_equal(a, b) for a, b in zip(found, expected.values(), strict=True))


def test_a_file_of_nxps_converter_is_refused_with_the_sentence() -> None:
    data = write_model(nxp_file.converted(read_model(tiny.convnet())))
    with pytest.raises(RuntimeError, match="made by NXP's converter"):
        interpreter(data)


def test_a_damaged_file_is_refused_with_the_reason() -> None:
    data = bytearray(convert(tiny.convnet(), Options()).model)
    at = data.index(MAGIC.to_bytes(4, "little"))
    data[at + 300] ^= 1
    with pytest.raises(RuntimeError, match="checksum does not match"):
        interpreter(bytes(data))


def test_a_run_that_takes_too_long_is_stopped() -> None:
    model = read_model(convert(tiny.convnet(), Options()).model)
    graph, blocks = model.main, HOSTILE["fully connected"]()
    (op,) = graph.operators
    for tensor, block in zip(op.inputs[-3:], (blocks.microcode, blocks.weights, blocks.kernels), strict=True):
        graph.tensors[tensor].data = np.frombuffer(block, np.uint8)
        graph.tensors[tensor].shape = (len(block),)
    for tensor in (op.inputs[0], op.outputs[0]):
        graph.tensors[tensor].shape = (64,)
    made = interpreter(write_model(model), {"timeout": "1"})
    with pytest.raises(RuntimeError, match="took too long"):
        run(made, [np.zeros(64, np.int8)])


@pytest.mark.parametrize("options", [{"speed": "1"}, {"threads": "0"}, {"timeout": "soon"}], ids=str)
def test_wrong_options_are_named(options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="options are timeout"):
        load_delegate(on.litert_delegate(), options)
