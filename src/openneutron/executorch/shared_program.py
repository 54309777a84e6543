"""A quantized program as bytes, so that one export and one calibration serve many compiles, also in other processes.

Example:
    >>> data, sqnr = quantize_to_bytes(find("cifarnet").load())
    >>> openneutron.compile(program_of(data), target="mcxn94x")
"""

from __future__ import annotations

import io
from typing import Any

import torch

from openneutron.executorch.capture.export import one_thread
from openneutron.executorch.capture.sources import Loaded
from openneutron.executorch.engines import engines_of
from openneutron.executorch.quality.wish import Wish, first_choices, given_choices
from openneutron.executorch.quantize.accuracy import worst_sqnr
from openneutron.executorch.quantize.choices import Choices
from openneutron.executorch.quantized_model import quantize
from openneutron.executorch.torch_lock import torch_lock


@torch_lock()
def quantize_to_bytes(
    loaded: Loaded, *, recipe: str = "neutron", channels_last: bool = False, **options: Any
) -> tuple[bytes, float | None]:
    """The quantized program, and the SQNR of its worst output; `options` are those of a compile that quantize.

    A program that is quantized already comes back as it is, with no SQNR.
    """
    program: Any = loaded.model
    sqnr: float | None = None
    if loaded.calibration:
        engines, wish, given = engines_of(recipe), Wish.of(options), given_choices(options)

        def choose(exported: torch.export.ExportedProgram, chosen: Choices) -> Choices:
            """Begin as a compile does that searches for nothing better."""
            return first_choices(exported, chosen, wish, given) if engines.neutron and not engines.cortex_m else chosen

        with one_thread():  # a histogram's sums depend on the number of threads
            made = quantize(
                loaded.model, loaded.example_inputs or (), loaded.calibration, Choices.of(options),
                channels_last=channels_last, engines=engines, choose=choose,
            )  # fmt: skip
            program, sqnr = made.program, worst_sqnr(made.compare())
    file = io.BytesIO()
    torch.export.save(program, file)
    return file.getvalue(), sqnr


def program_of(data: bytes) -> torch.export.ExportedProgram:
    """A fresh program from the bytes; a compile may rewrite the one it is given."""
    return torch.export.load(io.BytesIO(data))
