from __future__ import annotations

import pytest
import torch

from openneutron.errors import OptionError
from openneutron.executorch.run.inputs import arrange_inputs
from openneutron.microcode.pte import PlanTensor

PLAIN = PlanTensor("float32", (2, 3, 4, 5), (0, 1, 2, 3))
LAST = PlanTensor("float32", (2, 3, 4, 5), (0, 2, 3, 1))
X = torch.rand(2, 3, 4, 5)

LAYOUTS = {
    "contiguous": X,
    "channels last": X.to(memory_format=torch.channels_last),
    "transposed": X.transpose(2, 3).contiguous().transpose(2, 3),
    "strided": torch.cat([X, X], 3)[..., :5],
    "needs gradient": X.clone().requires_grad_(),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_values_stay_and_memory_is_as_the_program_wants_it(name: str) -> None:
    for wanted, form in ((PLAIN, torch.contiguous_format), (LAST, torch.channels_last)):
        (made,) = arrange_inputs([wanted], [LAYOUTS[name]], where="a.pte")
        assert torch.equal(made, X)
        assert made.is_contiguous(memory_format=form)


def test_what_fits_is_not_copied() -> None:
    (made,) = arrange_inputs([PLAIN], [X], where="a.pte")
    assert made.data_ptr() == X.data_ptr()


def test_a_dynamic_input_may_be_smaller() -> None:
    wanted = PlanTensor("float32", (8, 3, 4, 5), (0, 1, 2, 3), dynamic=True)
    assert arrange_inputs([wanted], [X], where="a.pte")[0].shape == X.shape


def test_values_that_are_no_tensors_pass() -> None:
    assert arrange_inputs([PlanTensor("", (), ())], [3], where="a.pte") == (3,)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "takes 1 inputs, 0 were given"),
        ([X, X], "takes 1 inputs, 2 were given"),
        ([X.double()], r"input 0 is float64 \[2, 3, 4, 5\], the program takes float32 \[2, 3, 4, 5\]"),
        ([X[:1]], r"input 0 is float32 \[1, 3, 4, 5\]"),
        (["an image"], "input 0 is a str"),
    ],
    ids=["none", "too many", "type", "shape", "text"],
)
def test_what_does_not_fit_is_named(given: list[object], message: str) -> None:
    with pytest.raises(OptionError, match=f"a.pte: .*{message}"):
        arrange_inputs([PLAIN], given, where="a.pte")


def test_a_channels_last_tensor_gives_the_same_result_in_the_runtime() -> None:
    import openneutron as on

    torch.manual_seed(0)
    image = torch.rand(1, 3, 6, 6)
    for channels_last in (False, True):
        program = on.compile(
            torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()),
            (image,),
            calibration=[(image,)],
            channels_last=channels_last,
        )
        plain = program.run(image)[0]
        assert torch.equal(program.run(image.to(memory_format=torch.channels_last))[0], plain)
        assert plain.abs().max() > 0
