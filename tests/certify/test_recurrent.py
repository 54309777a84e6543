"""Layers with state are proved, and lies about their weights, parameters and states are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from openneutron.certify.prove import prove
from openneutron.certify.published import KERNELS
from openneutron.certify.refused import Refused
from openneutron.convert import convert
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.machine import targets
from openneutron.microcode.decode import decode
from openneutron.microcode.graph_op import is_graph_op
from openneutron.microcode.instructions import Loop
from openneutron.options import Options
from tests.certify.forge import Blocks, add_to_operand, add_to_parameter, calls, forge_blocks
from tests.recurrent import gru
from tests.stateful import Lstm, Svdf
from tests.streaming import running_sum, streaming_convnet

LAYERS = {
    "lstm": Lstm(cells=5, outputs=4, inputs=6, steps=3, project=True, normalize=True).model,
    "svdf": Svdf().model,
}


@pytest.mark.parametrize("target", targets.geometries())
@pytest.mark.parametrize("make", [streaming_convnet, running_sum, *LAYERS.values()])
def test_models_with_state_are_proved(make: Callable[[], bytes], target: str) -> None:
    data = make()
    assert prove(convert(data, Options(target=target)).model, data).graphs == 1


@pytest.mark.parametrize("kernel", sorted(LAYERS))
def test_no_parameter_and_no_operand_can_be_changed(kernel: str) -> None:
    source = LAYERS[kernel]()
    compiled = convert(source, Options()).model
    roles, names = next((roles, names) for name, _, roles, names in KERNELS.values() if name == kernel)
    for number in range(len(names) + len(roles)):

        def change(blocks: Blocks, number: int = number) -> None:
            at, _, count = calls(blocks[0])[0]
            if number < len(names):
                add_to_parameter(blocks[0], at, count, number, 1)
            else:
                add_to_operand(blocks[0], at, number - len(names), 64)

        with pytest.raises(Refused):
            prove(forge_blocks(compiled, change), source)
            raise AssertionError([*(name for name, _ in names), *roles][number])


@pytest.mark.parametrize("kernel", sorted(LAYERS))
def test_one_changed_weight_is_refused_at_its_call(kernel: str) -> None:
    source = LAYERS[kernel]()

    def change(blocks: Blocks) -> None:
        blocks[1][0] ^= 1

    with pytest.raises(Refused, match=rf"byte \d+: .*{kernel} .* no operator of the source"):
        prove(forge_blocks(convert(source, Options()).model, change), source)


@pytest.mark.parametrize("make", [streaming_convnet, *LAYERS.values()])
def test_first_contents_of_a_state_are_compared(make: Callable[[], bytes]) -> None:
    source = make()

    def change(blocks: Blocks) -> None:
        table = int.from_bytes(blocks[0][84:88], "little")  # of states: offset, bytes, place of the contents, filling
        if blocks[0][table + 8 : table + 12] == b"\xff" * 4:
            blocks[0][table + 12] ^= 1
        else:
            blocks[1][int.from_bytes(blocks[0][table + 8 : table + 12], "little")] ^= 1

    with pytest.raises(Refused, match="state"):
        prove(forge_blocks(convert(source, Options()).model, change), source)


def test_a_source_that_keeps_less_is_refused() -> None:
    """The compiled model remembers; a source without the assignment does not."""
    compiled, model = convert(running_sum(), Options()).model, read_model(running_sum())
    model.main.operators = [op for op in model.main.operators if op.code != "ASSIGN_VARIABLE"]
    with pytest.raises(Refused, match="state"):
        prove(compiled, write_model(model))


def test_intermediates_of_an_operator_on_the_cpu_are_compared() -> None:
    """Their scales decide what the operator computes."""
    model = read_model(Lstm(cell_scale=0.0005, normalize=True).model())  # a scale that stays on the CPU
    source = write_model(model)
    prove(convert(source, Options()).model, source)
    inner = model.main.tensors[model.main.operators[0].intermediates[0]]
    assert inner.quantization is not None
    inner.quantization = replace(inner.quantization, scale=(0.001,))
    with pytest.raises(Refused, match="is none of the source's"):
        prove(convert(source, Options()).model, write_model(model))


@pytest.mark.parametrize("target", targets.geometries())
@pytest.mark.parametrize("wide", [False, True])
def test_rolled_layers_are_proved(target: str, wide: bool) -> None:
    """A loop over the steps of a GRU, in 8 and in 16 bits."""
    source = gru(5, sequence=True, backwards=wide, wide=wide)
    compiled = convert(source, Options(target=target)).model
    op = next(op for op in read_model(compiled).main.operators if is_graph_op(op))
    blocks = [read_model(compiled).main.tensors[index].data for index in op.inputs[-3:]]
    program = decode(*(block.tobytes() for block in blocks if block is not None))
    assert any(isinstance(step, Loop) for step in program.instructions), "nothing was rolled"
    assert prove(compiled, source).graphs == 1
