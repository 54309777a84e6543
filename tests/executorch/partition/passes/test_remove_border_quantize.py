"""INT8 programs: the border's quantize and dequantize are gone, and the stored values are those of the float program."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from openneutron.cli.inputs.contents import contents_of
from openneutron.errors import UnsupportedError
from openneutron.executorch.partition.passes.remove_border_quantize import remove_border_quantize
from openneutron.executorch.pipeline import Built, build
from openneutron.executorch.run.runtime import load_program
from openneutron.microcode.pte import read_constants
from tests.executorch.ordered import ordered

IMAGE = torch.linspace(-1, 1, 72).reshape(1, 2, 6, 6)


class Net(nn.Module):
    """A quantized output, and one that the CPU makes in float from the input itself."""

    def __init__(self, *, with_float: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(2, 3, 1)
        self.with_float = with_float

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.relu(self.conv(x))
        return (y, ordered(x)) if self.with_float else (y,)


def stored(built: Built) -> tuple[float, int]:
    """Scale and zero point of the first input, as the notes of an INT8 program say."""
    words = built.report.notes[0].split()
    return float(words[words.index("scale") + 1]), int(words[-1])


@pytest.mark.parametrize("channels_last", [False, True], ids=["contiguous", "channels last"])
def test_an_int8_program_stores_what_the_float_program_quantizes(channels_last: bool) -> None:
    model = Net(with_float=False).eval()
    plain, int8 = (
        build(model, (IMAGE,), calibration=[(IMAGE,)], channels_last=channels_last, int8_io=wish)
        for wish in (False, True)
    )
    scale, zero = stored(int8)
    given = torch.clamp(torch.round(IMAGE / scale) + zero, -128, 127)
    image = (given - zero) * scale
    if channels_last:
        given, image = (x.to(memory_format=torch.channels_last) for x in (given, image))
    (wanted,) = load_program(plain.pte).run(image)
    (got,) = load_program(int8.pte).run(given.to(torch.int8))
    words = int8.report.notes[1].split()
    out_scale, out_zero = float(words[words.index("scale") + 1]), int(words[-1])
    told = read_constants(int8.pte, where="int8.pte")
    assert told == load_program(int8.pte).constants and [*told.values()] == pytest.approx(
        [scale, zero, out_scale, out_zero], rel=1e-6
    )
    shown = contents_of(int8.pte, "int8.pte")
    assert shown.inputs[0].quantization == f"scale {scale:g}, zero point {zero}"
    assert shown.outputs[0].quantization == f"scale {out_scale:g}, zero point {out_zero}"
    assert [*told] == [f"forward_{side}0_{key}" for side in ("input", "output") for key in ("scale", "zp")]
    assert got.dtype == torch.int8
    assert torch.equal(got.to(torch.int32), torch.round(wanted / out_scale).to(torch.int32) + out_zero)
    assert not [v for v in int8.report.nodes if v.code == "border"]
    assert len([v for v in plain.report.nodes if v.code == "border"]) == 2


def test_what_is_read_or_made_in_float_keeps_its_type_and_says_why() -> None:
    built = build(Net(with_float=True).eval(), (IMAGE,), calibration=[(IMAGE,)], int8_io=True)
    notes = {note.partition(" keeps")[0]: note for note in built.report.notes}
    assert "topk" in notes["input x"] and "getitem" in notes["output 1"]
    assert any(note.startswith("output 0 is INT8") for note in built.report.notes)
    first, second = load_program(built.pte).run(IMAGE)
    assert first.dtype == torch.int8 and torch.allclose(second, ordered(IMAGE), atol=1e-6)


def test_a_program_without_any_quantized_border_is_refused() -> None:
    class Island(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(2, 3, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return ordered(self.conv(ordered(x)))

    with pytest.raises(UnsupportedError, match=r"no input or output can be INT8: input x keeps its type.*topk"):
        build(Island().eval(), (IMAGE,), calibration=[(IMAGE,)], int8_io=True)


def test_an_output_that_is_an_input_stays() -> None:
    program = torch.export.export(nn.Identity(), (IMAGE,))
    assert [border.reason != "" for border in remove_border_quantize(program)] == [True, True]
