"""Whole compiles: exact, verified, predicted to the cycle, deterministic."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.convert import convert
from openneutron.errors import OptionError, UnsupportedError
from openneutron.litert.read import read_model
from openneutron.machine.simulator import Simulator
from openneutron.microcode.graph_op import blocks_of, is_graph_op
from openneutron.options import Options
from tests.compiler.networks import Network, random_network
from tests.golden import assert_exact


@pytest.mark.parametrize("seed", range(40))
def test_random_networks_are_exact(seed: int) -> None:
    model, data = random_network(seed)
    assert_exact(model, [data], target=("imxrt700", "mcxn94x", "imx95")[seed % 3])


@pytest.mark.parametrize("seed", range(0, 40, 4))
def test_prefetched_constants_change_nothing_but_the_schedule(seed: int) -> None:
    model, data = random_network(seed)
    for target in ("imxrt700", "imx95"):
        assert_exact(model, [data], target=target, fetch_constants_to_sram=True)
    assert convert(model, Options(fetch_constants_to_sram=True)).report.totals.prefetch_bytes > 0


@pytest.mark.parametrize("seed", range(1, 40, 4))
def test_neutron_s_computes_in_its_tcm(seed: int) -> None:
    model, data = random_network(seed)
    totals = convert(model, Options(target="imx95")).report.totals
    assert totals.scratch_bytes == totals.prefetch_bytes == 0 < totals.tcm_bytes <= 1 << 20
    assert_exact(model, [data], target="imx95")


def test_model_larger_than_the_tcm_is_computed_outside_and_says_so() -> None:
    net = Network(np.random.default_rng(1), (1, 4, 1024, 520))
    model = net.finish(net.add(net.input, net.input))
    report = convert(model, Options(target="imx95")).report
    assert report.totals.tcm_bytes == 0
    assert "main memory" in report.notes[0]
    assert_exact(model, [net.data()], target="imx95")


def test_rows_whose_window_lies_in_the_padding_read_nothing() -> None:
    net = Network(np.random.default_rng(1), (1, 9, 7, 1))
    framed = net.pad(net.conv(net.input, 1), 1, 1, 1, 1)
    model = net.finish(net.global_pool(net.conv(framed, 17, 1, 2, "VALID"), mean=True))
    for target in ("imxrt700", "mcxn94x", "imx95"):
        assert_exact(model, [net.data()], target=target)


@pytest.mark.parametrize("target", ["imxrt700", "mcxn94x", "imx95"])
def test_layers_with_many_weights_are_fetched_in_pieces(target: str) -> None:
    net = Network(np.random.default_rng(1), (1, 4, 4, 512))
    model = net.finish(net.conv(net.input, 100, 3))
    result = convert(model, Options(target=target, fetch_constants_to_sram=True)).report
    assert result.passes["chunk_weights"] == 1
    assert result.totals.prefetch_bytes + result.totals.tcm_bytes < result.totals.weight_bytes / 2
    assert_exact(model, [net.data()], target=target, fetch_constants_to_sram=True)


@pytest.mark.parametrize("optimize", ["fast", "default", "max"])
@pytest.mark.parametrize("seed", [1, 5, 9, 13])
def test_prediction_equals_simulation_to_the_cycle(seed: int, optimize: str) -> None:
    model, data = random_network(seed)
    for fetch in (False, True):
        result = convert(
            model, Options(target="imx95" if seed % 2 else "imxrt700", optimize=optimize, fetch_constants_to_sram=fetch)
        )
        graph = read_model(result.model).main
        (op,) = [op for op in graph.operators if is_graph_op(op)]
        blocks = blocks_of(graph, op, outputs=len(op.outputs) - 1)
        with Simulator(blocks.microcode, blocks.weights, blocks.kernels) as simulator:
            simulator.run([data])
            assert simulator.cycles == result.report.totals.cycles > 0


def _chain(height: int = 32) -> tuple[bytes, np.ndarray]:  # type: ignore[type-arg]
    net = Network(np.random.default_rng(7), (1, height, 32, 8))
    value = net.input
    for channels in (32, 32, 16):
        value = net.conv(value, channels, 3)
    return net.finish(net.max_pool(value)), net.data()


def test_cascades_hold_rows_instead_of_tensors() -> None:
    model, data = _chain()
    fast = convert(model, Options(optimize="fast")).report.totals
    default = convert(model, Options()).report.totals
    assert default.scratch_bytes < fast.scratch_bytes / 3
    assert default.cycles <= 1.06 * fast.cycles
    assert_exact(model, [data])


@pytest.mark.parametrize("bilinear", [False, True], ids=["nearest", "bilinear"])
def test_what_is_enlarged_streams_and_is_exact(bilinear: bool) -> None:
    net = Network(np.random.default_rng(2), (1, 16, 8, 4))
    large = net.enlarge(net.conv(net.input, 32, 3), bilinear)
    model = net.finish(net.conv(net.conv(large, 16, 3, 2), 4, 3, 2))
    least = convert(model, Options()).report.totals
    assert least.scratch_bytes < 32 * 16 * 32 * 0.6  # far less than the enlarged map
    for target in ("imxrt700", "mcxn94x"):
        assert_exact(model, [net.data()], target=target)
    assert_exact(model, [net.data()], fit_bytes=least.peak_bytes - 256)


@pytest.mark.parametrize("seed", range(0, 40, 5))
def test_the_least_memory_is_exact(seed: int) -> None:
    model, data = random_network(seed)
    budget = convert(model, Options()).report.totals.peak_bytes
    for _ in range(4):
        try:
            budget = convert(model, Options(fit_bytes=budget - 16)).report.totals.peak_bytes
        except UnsupportedError:
            break
    assert_exact(model, [data], fit_bytes=budget)


def test_fit_keeps_every_budget_and_never_gets_faster_with_less() -> None:
    model, data = _chain()
    largest = convert(model, Options(optimize="fast")).report.totals.peak_bytes
    smallest = convert(model, Options()).report.totals.peak_bytes
    cycles: list[int] = []
    for budget in (largest, (largest + smallest) // 2, smallest):
        totals = convert(model, Options(fit_bytes=budget)).report.totals
        assert totals.peak_bytes <= budget
        cycles.append(totals.cycles)
        assert_exact(model, [data], fit_bytes=budget)
    assert cycles == sorted(cycles)


def test_fit_is_never_slower_than_fast_in_the_same_bytes() -> None:
    net = Network(np.random.default_rng(0), (1, 16, 16, 3))
    first = net.conv(net.input, 8, 3)
    model = net.finish(net.max_pool(net.add(first, net.conv(first, 8, 3))))
    fast = convert(model, Options(optimize="fast")).report.totals
    within = convert(model, Options(fit_bytes=fast.peak_bytes)).report.totals
    assert within.cycles <= fast.cycles


@pytest.mark.parametrize(("target", "written"), [("imxrt700", True), ("imx95", False)])
def test_a_kernel_selection_is_written_where_an_application_links_kernels(target: str, written: bool) -> None:
    model, _ = random_network(3)
    result = convert(model, Options(target=target, dump_kernel_selection_code=True))
    assert bool(result.kernel_selection_code) == bool(result.kernel_selections) == written
    assert any("no kernel selection" in note for note in result.report.notes) != written


def test_fit_that_is_impossible_says_how_many_bytes_are_missing() -> None:
    model, _ = _chain()
    io = convert(model, Options()).report.totals.io_bytes
    with pytest.raises(UnsupportedError, match="more than the budget"):
        convert(model, Options(fit_bytes=io + 64))


def test_same_input_same_bytes() -> None:
    model, _ = random_network(3)
    assert convert(model, Options()).model == convert(model, Options()).model


def test_every_pass_can_be_switched_off_and_nothing_else_changes() -> None:
    from openneutron.compiler.front import fuse

    model, data = random_network(11)
    for name in fuse.names():
        assert_exact(model, [data], passes_off=(name,))


def test_unknown_options_are_refused_with_the_known_ones() -> None:
    model, _ = random_network(0)
    with pytest.raises(OptionError, match="fuse_pad"):
        convert(model, Options(passes_off=("nonsense",)))
    with pytest.raises(OptionError, match="fast, default, max"):
        convert(model, Options(optimize="best"))
    with pytest.raises(OptionError, match="imxrt700"):
        convert(model, Options(target="imxrt7000"))
    with pytest.raises(OptionError, match="no public figures"):
        convert(model, Options(target="s32n79"))


def test_left_out_operators_stay_with_their_reason() -> None:
    net = Network(np.random.default_rng(1), (1, 8, 8, 4))
    middle = net.logistic(net.conv(net.input, 8))
    model = net.finish(net.conv(middle, 4))
    report = convert(model, Options(operators_not_to_delegate=("LOGISTIC",))).report
    assert [(op.code, op.converted) for op in report.operators] == [
        ("CONV_2D", True), ("LOGISTIC", False), ("CONV_2D", True),
    ]  # fmt: skip
    assert report.operators[1].reason_code == "left_out"
    assert report.totals.neutron_graphs == 2
