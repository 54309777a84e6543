"""What a board must have; an image keeps within what was counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openneutron.errors import OptionError
from openneutron.project import boards
from openneutron.project.boards import Memory
from openneutron.project.content import Content
from openneutron.project.sizes import CODE_BYTES, Sizes, check_sizes

SIZES = Sizes(payload_bytes=50_000, sample_bytes=2_000, arena_bytes=9_000, input_bytes=3_072, output_bytes=16)


def test_what_just_fits_is_accepted_and_one_byte_less_is_refused() -> None:
    board = boards.load("frdmmcxn947")
    exact = replace(board, flash=Memory(0, SIZES.flash_bytes), ram=Memory(0, SIZES.ram_bytes))
    check_sizes(SIZES, exact)
    for kind, less in (
        ("1 bytes of flash", replace(exact, flash=Memory(0, SIZES.flash_bytes - 1))),
        ("1 bytes of RAM", replace(exact, ram=Memory(0, SIZES.ram_bytes - 1))),
    ):
        with pytest.raises(OptionError, match=f"frdmmcxn947: .*too large for it: {kind}"):
            check_sizes(SIZES, less)


@pytest.mark.parametrize(
    ("sizes", "largest"),
    [
        (replace(SIZES, payload_bytes=9_999_999), "weights and microcode take 9,999,999 bytes"),
        (replace(SIZES, sample_bytes=9_999_999), "--samples 1"),
        (replace(SIZES, arena_bytes=9_999_999), "the model's arena take.*openneutron fits"),
    ],
)
def test_the_largest_part_is_named(sizes: Sizes, largest: str) -> None:
    with pytest.raises(OptionError, match=largest):
        check_sizes(sizes, boards.load("frdmmcxn947"))


def test_sizes_of_a_model_are_those_of_its_files(content: Content) -> None:
    files = content.files(sections=True)
    header = files["model/model.h"].decode()
    assert f"#define MODEL_ARENA_BYTES {content.sizes.arena_bytes}u" in header
    assert f"#define MODEL_PAYLOAD_BYTES {content.sizes.payload_bytes}u" in header
    assert f"#define MODEL_IO_BYTES {content.sizes.input_bytes + content.sizes.output_bytes}u" in header
    assert content.sizes.flash_bytes == CODE_BYTES + content.sizes.payload_bytes + content.sizes.sample_bytes
