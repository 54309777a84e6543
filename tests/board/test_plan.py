"""Stock plans against the headers of files that NXP's converter made."""

from __future__ import annotations

import pytest

from benchmarks.board_networks import BOARD_NETWORKS
from benchmarks.networks import Layers
from openneutron.board.answer import converted_by_stock
from openneutron.board.plan import stock_plan
from openneutron.board.sdk import rules
from openneutron.compiler.numbers.geometry import VALID
from openneutron.litert import DType, GraphBuilder
from openneutron.litert.read import read_model
from openneutron.machine import targets

MCXN = targets.load("mcxn94x")


def _two_branches() -> bytes:
    net = Layers((1, 8, 8, 16))
    y = net.conv(net.input, 16, 3)
    y = net.add(net.conv(y, 16, 3), y)
    return net.finish(net.conv(y, 16, 1))


def test_add_does_not_write_over_its_operands() -> None:
    # At the ADD both operands and its result are whole tensors of 1,024 bytes.
    assert stock_plan(read_model(_two_branches()).main, MCXN).tasks.scratch_bytes == 3 * 1024


def test_a_view_is_no_call_and_takes_no_memory() -> None:
    net = Layers((1, 4, 4, 16))
    y = net.conv(net.reshape(net.conv(net.input, 16, 1), (1, 2, 8, 16)), 16, 1)
    plan = stock_plan(read_model(net.finish(net.reshape(y, (1, 256)))).main, MCXN)
    assert plan.calls == 2
    assert plan.tasks.scratch_bytes == 256


@pytest.mark.parametrize(("channels", "calls"), [(3, 2), (4, 1)])
def test_an_input_of_other_depth_than_the_array_costs_a_call(channels: int, calls: int) -> None:
    net = Layers((1, 8, 8, channels))
    assert stock_plan(read_model(net.finish(net.conv(net.input, 8, 3))).main, MCXN).calls == calls


@pytest.mark.parametrize(
    ("chip", "version", "channels", "calls"),
    [
        ("mcxn94x", "1.2", 10, 1),
        ("mcxn94x", "3.0", 10, 2),
        ("imxrt700", "3.0", 10, 3),
        ("imxrt700", "3.0", 16, 1),
        ("imxrt700", "3.1", 10, 1),
    ],
)
def test_outputs_that_do_not_fill_the_array_are_padded_and_sliced_by_version(
    chip: str, version: str, channels: int, calls: int
) -> None:
    net = Layers((1, 1, 1, 16))
    data = net.finish(net.reshape(net.fully_connected(net.input, channels), (channels,)))
    plan = stock_plan(read_model(data).main, targets.load(chip), by=rules(chip, version))
    assert plan.calls == calls


def test_padding_that_a_convolution_reads_takes_a_call_but_no_memory() -> None:
    net = Layers((1, 8, 8, 16))
    y = net.depthwise(net.pad(net.conv(net.input, 16, 1), 1, 1), 3, 2, padding=VALID)
    plan = stock_plan(read_model(net.finish(net.conv(y, 16, 1))).main, MCXN)
    assert plan.calls == 4
    assert plan.tasks.scratch_bytes == (64 + 16) * 16


def test_a_plan_larger_than_the_memory_is_still_told() -> None:
    net = Layers((1, 512, 512, 4))
    y = net.conv(net.conv(net.input, 8, 3), 8, 3)
    plan = stock_plan(read_model(net.finish(net.max_pool(y, 2, 2))).main, MCXN)
    assert plan.tasks.scratch_bytes == 2 * 512 * 512 * 8 > MCXN.sram_bytes


def test_more_inputs_and_outputs_than_a_byte_counts_have_their_price() -> None:
    """Steps that stock leaves unrolled may make a graph of hundreds."""
    g = GraphBuilder()
    ends = [[g.tensor(f"{name}{at}", (1, 8), DType.INT8, 0.1, 0) for at in range(300)] for name in "xy"]
    for x, y in zip(*ends, strict=True):
        g.op("ADD", [x, x], [y])
    plan = stock_plan(g.finish(*ends).main, MCXN)
    assert plan.calls == 300 and plan.cycles == 300 * (plan.events[0].end - plan.events[0].start)


def test_weights_in_flash_are_fetched_layer_by_layer() -> None:
    made = converted_by_stock(BOARD_NETWORKS["autoencoder"](), MCXN, fetch_constants=True)
    (plan,) = made.plans
    assert plan.tasks.prefetch_bytes >= 128 * 640
    assert sum(event.lane == "dma" for event in plan.events) == 10
