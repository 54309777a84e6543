"""A loaded program as a decoder of text: one token and its position in, logits out.

Example:
    >>> decoder = decoder_of(load_program("decoder.pte"), "decoder.pte")
    >>> logits = decoder.feed([0, 17])
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Final

import torch

from openneutron.errors import OptionError
from openneutron.executorch.run.runtime import LoadedProgram
from openneutron.language.decoder import Decoder

_NO_DECODER: Final = "give a model that takes one token and its position, in this order, and returns logits"


def decoder_of(loaded: LoadedProgram, where: str) -> Decoder:
    """Return a loaded program as a decoder; a program that is none is an error."""
    inputs, outputs = loaded.inputs, loaded.outputs
    one_each = len(inputs) == 2 and all(_is_one_integer(one.dtype, one.shape) for one in inputs)
    if not one_each or not outputs or not outputs[0].shape:
        taken = ", ".join(f"{one.dtype} {list(one.shape)}" for one in inputs) or "nothing"
        raise OptionError(f"the program takes {taken}: it is no decoder", where=where, hint=_NO_DECODER)
    context = loaded.constants.get("get_max_seq_len", loaded.constants.get("get_max_context_len"))
    if not isinstance(context, int) or context < 1:
        hint = "compile it with constant_methods={'get_max_seq_len': …}"
        raise OptionError("the program does not say how long its context is", where=where, hint=hint)
    kinds = [(getattr(torch, one.dtype), one.shape) for one in inputs]

    def step(token: int, position: int) -> Any:
        given = (
            torch.full(shape, value, dtype=kind) for (kind, shape), value in zip(kinds, (token, position), strict=True)
        )
        return loaded.run(*given)[0].numpy()

    return Decoder(step, loaded.reset, context, outputs[0].shape[-1], where)


def _is_one_integer(dtype: str, shape: tuple[int, ...]) -> bool:
    return dtype in ("int32", "int64") and all(size == 1 for size in shape)


def module_decoder(model: torch.nn.Module, example_inputs: Sequence[torch.Tensor], like: Decoder) -> Decoder:
    """Return a float module as a decoder with the context and vocabulary of its program; its buffers are copies."""
    module = copy.deepcopy(model).eval()
    first = {name: value.clone() for name, value in module.named_buffers()}

    def reset() -> None:
        with torch.no_grad():
            for name, value in module.named_buffers():
                value.copy_(first[name])

    def step(token: int, position: int) -> Any:
        pairs = zip(example_inputs, (token, position), strict=True)
        with torch.no_grad():
            result = module(*(torch.full_like(one, value) for one, value in pairs))
        return (result[0] if isinstance(result, (tuple, list)) else result).numpy()

    return Decoder(step, reset, like.context, like.vocabulary)
