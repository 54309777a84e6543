from __future__ import annotations

from benchmarks.board_networks import BOARD_NETWORKS
from openneutron.board.answer import converted_by_stock
from openneutron.board.peak import largest_scratch, largest_weights, short
from openneutron.machine import targets


def test_the_peak_names_the_tensors_that_make_it() -> None:
    made = converted_by_stock(BOARD_NETWORKS["unpu_resnet"](), targets.load("mcxn94x"))
    text = largest_scratch(made)
    assert text.count("20,480") == 3  # the ADD's operands and its result


def test_the_largest_weights_are_those_of_one_layer() -> None:
    made = converted_by_stock(BOARD_NETWORKS["cifarnet"](), targets.load("mcxn94x"))
    assert "51,712 bytes" in largest_weights(made, targets.load("mcxn94x"))


def test_long_names_are_cut() -> None:
    assert len(short("x" * 300)) == 40 and short("conv1") == "conv1"
