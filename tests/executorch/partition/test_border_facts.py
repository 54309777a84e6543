from __future__ import annotations

import torch

from openneutron.executorch.partition.border_facts import border_constants, quantized_inputs
from openneutron.executorch.partition.passes.remove_border_quantize import Border

BORDERS = [Border("input a", 0.5, 3), Border("input b", reason="it is an index"), Border("output 0", 0.25, -1)]


def test_every_int8_end_has_two_methods_and_those_that_keep_their_type_have_none() -> None:
    assert border_constants(BORDERS, 2) == {
        "forward_input0_scale": 0.5,
        "forward_input0_zp": 3,
        "forward_output0_scale": 0.25,
        "forward_output0_zp": -1,
    }
    assert border_constants([], 0) == border_constants([BORDERS[1]], 1) == {}


def test_inputs_are_rounded_and_clamped_as_the_quantize_that_is_gone() -> None:
    index = torch.tensor([1])
    first, second = quantized_inputs(BORDERS, (torch.tensor([0.0, 1.3, -1000.0, 1000.0]), index))
    assert first.tolist() == [3, 6, -128, 127] and first.dtype is torch.int8
    assert second is index
    assert quantized_inputs([], (index,)) == (index,)
