"""L1 passes: each acts where it should, and the result stays exact."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.convert import convert
from openneutron.options import Options
from tests.compiler.networks import Network
from tests.golden import assert_exact


def _pad(net: Network) -> int:
    return net.conv(net.pad(net.input, 1, 2, 1, 0), 8, 3, padding="VALID")


def _lut(net: Network) -> int:
    return net.logistic(net.conv(net.input, 8))


def _concat(net: Network) -> int:
    return net.conv(net.concat([net.conv(net.input, 8, 1), net.requantize(net.conv(net.input, 5, 3), 0.1, 1)]), 4)


def _slice(net: Network) -> int:
    return net.conv(net.slice(net.conv(net.input, 12), [0, 2, 0, 4], [1, 10, 16, 8]), 4)


def _average(net: Network) -> int:
    return net.global_pool(net.conv(net.input, 16), mean=False)


def _mean(net: Network) -> int:
    return net.global_pool(net.conv(net.input, 16), mean=True)


def _few_channels_stride(net: Network) -> int:
    return net.conv(net.conv(net.input, 3, 1), 24, 3, 2)


def _cancelling(net: Network) -> int:
    there = net.transpose(net.conv(net.input, 8), 0, 3, 1, 2)
    return net.conv(net.transpose(there, 0, 2, 3, 1), 4)


def _composed(net: Network) -> int:
    return net.transpose(net.transpose(net.conv(net.input, 8), 0, 3, 1, 2), 0, 2, 1, 3)


def _through_a_view(net: Network) -> int:
    n, h, w, c = net.shape(net.input)
    there = net.reshape(net.transpose(net.input, 0, 3, 1, 2), n, c, h * w)
    return net.conv(net.reshape(net.transpose(there, 0, 2, 1), n, h, w, c), 4)


def _requantized(net: Network) -> int:
    return net.requantize(net.conv(net.input, 8), 0.3, -7)


def _two_tables(net: Network) -> int:
    return net.logistic(net.requantize(net.logistic(net.requantize(net.conv(net.input, 8), 0.1, 20)), 0.02, -9))


CASES = {
    "fuse_copies": _cancelling,
    "fuse_copies to one": _composed,
    "fuse_copies through a view": _through_a_view,
    "tabulate": _requantized,
    "tabulate tables in a row": _two_tables,
    "fuse_lut tables in a row": _two_tables,
    "fuse_pad": _pad,
    "fuse_lut": _lut,
    "elide_concat": _concat,
    "elide_slice": _slice,
    "merge_pixels": _few_channels_stride,
    "stream_pooling": _average,
    "stream_pooling mean": _mean,
}


@pytest.mark.parametrize("case", CASES)
def test_pass_acts_and_keeps_every_bit(case: str) -> None:
    name = case.split()[0]
    net = Network(np.random.default_rng(2), (1, 14, 16, 6))
    model = net.finish(CASES[case](net))
    data = net.data()
    on, off = convert(model, Options()).report, convert(model, Options(passes_off=(name,))).report
    assert on.passes[name] > 0
    assert name not in off.passes
    assert_exact(model, [data])
    assert_exact(model, [data], passes_off=(name,))


def test_padding_that_others_read_is_kept() -> None:
    net = Network(np.random.default_rng(3), (1, 14, 16, 6))
    padded = net.pad(net.input, 1, 1, 1, 1)
    model = net.finish(net.conv(padded, 8, 3, padding="VALID"), net.max_pool(padded))
    assert convert(model, Options()).report.passes["fuse_pad"] == 0
    assert_exact(model, [net.data()])


def test_table_behind_a_value_that_others_read_is_not_fused() -> None:
    net = Network(np.random.default_rng(4), (1, 8, 8, 4))
    value = net.conv(net.input, 8)
    model = net.finish(net.logistic(value), value)
    assert convert(model, Options()).report.passes["fuse_lut"] == 0
    assert_exact(model, [net.data()])


def test_part_that_two_concatenations_read_is_written_once() -> None:
    net = Network(np.random.default_rng(5), (1, 8, 8, 4))
    part = net.conv(net.input, 8, 1)
    first, second = (
        net.concat([part, net.requantize(net.conv(net.input, 3), *net.quant[part])]),
        net.concat([part, part]),
    )
    model = net.finish(net.conv(first, 4), net.conv(second, 4))
    assert_exact(model, [net.data()])


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_part_made_from_another_part_is_not_read_and_written_by_one_call(order: tuple[int, int]) -> None:
    net = Network(np.random.default_rng(7), (1, 8, 8, 4))
    part = net.conv(net.input, 8, 1)
    parts = [part, net.requantize(net.conv(part, 5, 3), *net.quant[part])]
    model = net.finish(net.conv(net.concat([parts[at] for at in order]), 4))
    assert_exact(model, [net.data()])


@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("window", [(5, 1, "SAME"), (3, 2, "SAME"), (3, 2, "VALID"), (4, 2, "SAME"), (7, 1, "VALID")])
def test_merged_first_layers_are_exact(channels: int, window: tuple[int, int, str]) -> None:
    kernel, stride, padding = window
    net = Network(np.random.default_rng(6), (1, 18, 24 + (1 if padding == "VALID" else 0), channels))
    value = net.conv(net.input, 8 * channels, kernel, stride, padding)
    model = net.finish(net.conv(value, 4))
    for target in ("imxrt700", "imx95"):
        assert_exact(model, [net.data()], target=target)
