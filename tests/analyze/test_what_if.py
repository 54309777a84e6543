from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from openneutron.analyze.what_if import what_ifs
from openneutron.convert import convert
from openneutron.litert.write import write_model
from openneutron.options import Options
from tests import tiny
from tests.compiler.networks import Network


@pytest.fixture(scope="module")
def odd() -> bytes:
    """Two convolutions of 12 channels: a pass and a half of eight."""
    network = Network(np.random.default_rng(0), (1, 12, 12, 4))
    network.outputs = [network.conv(network.conv(network.input, 12), 12)]
    return write_model(network.g.finish([network.input], network.outputs))


def test_each_what_if_is_what_compiling_gives() -> None:
    model, options = tiny.convnet(), Options()
    found = what_ifs([model], options, convert(model, options).report)
    assert {one.proof for one in found} == {"compiled"}
    for one in found:
        if one.option.startswith("--optimize"):
            again = convert(model, dataclasses.replace(options, optimize=one.option.split()[1])).report.totals
            assert (one.cycles, one.peak_bytes) == (again.cycles, again.peak_bytes)


def test_part_filled_passes_are_priced(odd: bytes) -> None:
    options = Options()
    report = convert(odd, options).report
    priced = [one for one in what_ifs([odd], options, report) if one.proof == "priced"]
    assert len(priced) == 2
    assert all("8 output channels instead of 12" in one.change and one.cycles < report.totals.cycles for one in priced)


def test_a_price_is_that_of_the_smaller_layer_compiled(odd: bytes) -> None:
    network = Network(np.random.default_rng(0), (1, 12, 12, 4))
    network.outputs = [network.conv(network.input, 8)]
    small = write_model(network.g.finish([network.input], network.outputs))
    options = Options(optimize="fast", passes_off=("merge_pixels",))  # merging depends on the channels itself
    report = convert(odd, options).report
    first = next(one for one in what_ifs([odd], options, report) if one.proof == "priced")
    (alone,) = convert(small, options).report.kernels
    assert report.totals.cycles - first.cycles == report.kernels[0].cycles - alone.cycles


def test_several_models_add_up(odd: bytes) -> None:
    options = Options()
    one = convert(odd, options).report
    both = dataclasses.replace(
        one,
        kernels=(*one.kernels, *(dataclasses.replace(k, graph=1) for k in one.kernels)),
        totals=dataclasses.replace(
            one.totals, cycles=2 * one.totals.cycles, operators_converted=2 * one.totals.operators_converted
        ),
    )
    fast = next(w for w in what_ifs([odd, odd], options, both) if w.option == "--optimize fast")
    assert fast.cycles == 2 * convert(odd, dataclasses.replace(options, optimize="fast")).report.totals.cycles
