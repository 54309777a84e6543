"""Perplexity of a language model in its forms: the float module, and the compiled program.

Example:
    >>> scores = score_text(program, loaded, rows)
    >>> scores[1].ratio(scores[0]), scores[1].agreement(scores[0])
    (1.012, 0.97)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from openneutron.executorch.capture.sources import Loaded
from openneutron.language.decoder import Decoder
from openneutron.language.perplexity import TextScore, measure
from openneutron.program import Program

FLOAT, COMPILED = "float", ".pte"


def score_text(
    program: Program,
    loaded: Loaded,
    rows: Sequence[Sequence[int]],
    *,
    progress: Callable[[str], None] | None = None,
) -> list[TextScore]:
    """Measure the float module and the program compiled from it on sequences of tokens."""
    forms = text_forms(program, loaded)
    return [measure(name, decoder, rows, progress=progress) for name, decoder in forms.items()]


def text_forms(program: Program, loaded: Loaded) -> Mapping[str, Decoder]:
    """Return the forms of a model as decoders by name; the float one first."""
    from openneutron.executorch.run.decoder import decoder_of, module_decoder
    from openneutron.executorch.run.runtime import load_program

    where = program.report.source
    compiled = decoder_of(load_program(program.pte, where=where), where)
    return {FLOAT: module_decoder(loaded.model, loaded.example_inputs or (), compiled), COMPILED: compiled}
