"""Perplexity of a language model in its forms: the float module, and the compiled program.

Example:
    >>> scores = score_text(program, loaded, rows)
    >>> scores[1].ratio(scores[0]), scores[1].agreement(scores[0])
    (1.012, 0.97)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

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
    compiled = program_decoder(program.pte, program.report.source)
    return {FLOAT: module_decoder(loaded, compiled), COMPILED: compiled}


def program_decoder(pte: bytes, where: str) -> Decoder:
    """Return a compiled program as a decoder."""
    from openneutron.executorch.run.decoder import decoder_of
    from openneutron.executorch.run.runtime import load_program

    return decoder_of(load_program(pte, where=where), where)


def module_decoder(loaded: Loaded, like: Decoder) -> Decoder:
    """Return the float module as a decoder with the context and vocabulary of its program; its buffers are copies."""
    import copy

    import torch

    module = copy.deepcopy(loaded.model).eval()
    first = {name: value.clone() for name, value in module.named_buffers()}
    example = loaded.example_inputs or ()

    def reset() -> None:
        with torch.no_grad():
            for name, value in module.named_buffers():
                value.copy_(first[name])

    def step(token: int, position: int) -> Any:
        with torch.no_grad():
            result = module(
                *(torch.full_like(one, value) for one, value in zip(example, (token, position), strict=True))
            )
        return (result[0] if isinstance(result, (tuple, list)) else result).numpy()

    return Decoder(step, reset, like.context, like.vocabulary, loaded.name)
