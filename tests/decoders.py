"""A small decoder with a cache and its compiled program, for tests of everything that runs language models."""

from __future__ import annotations

from functools import cache

import torch

import openneutron as on
from openneutron.language.vocabulary import Vocabulary, train_vocabulary
from openneutron.zoo.story_decoder import Shape, StoryDecoder, steps

SHAPE = Shape(vocabulary=264, width=16, layers=1, heads=4, shared_heads=2, inner=24, context=12)
TEXTS = ["a cat and a hat", "the cat sat", "that hat"]


def vocabulary() -> Vocabulary:
    """Return a vocabulary of as many tokens as the decoder has."""
    return train_vocabulary(TEXTS, SHAPE.vocabulary)


def decoder(shape: Shape = SHAPE) -> StoryDecoder:
    """Return the decoder with seeded weights, large enough that attention looks at some tokens more than at others."""
    torch.manual_seed(3)
    model = StoryDecoder(shape).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.4)
    return model


def calibration(shape: Shape = SHAPE) -> list[tuple[torch.Tensor, ...]]:
    """Return the calls of two sequences as long as the context."""
    source = torch.Generator().manual_seed(5)
    rows = torch.randint(0, shape.vocabulary, (2, shape.context), generator=source).tolist()
    return [step for row in rows for step in steps(row)]


@cache
def program() -> on.Program:
    """Return the decoder compiled with the defaults, and with the marks of begin and end that its vocabulary has."""
    samples = calibration()
    return on.compile(
        decoder(), samples[0], calibration=samples, name="small decoder",
        constant_methods={"get_bos_id": 0, "get_eos_ids": [1, 5]},
    )  # fmt: skip
