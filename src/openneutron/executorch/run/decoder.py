"""A loaded program as a decoder of text: one token and its position in, logits out.

Example:
    >>> decoder = decoder_of(load_program("decoder.pte"), "decoder.pte")
    >>> logits = decoder.feed([0, 17])
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, Final

import torch

from openneutron.errors import OptionError
from openneutron.executorch.run.runtime import LoadedProgram
from openneutron.language.decoder import Decoder

_INTEGERS: Final = ("int32", "int64")
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

    decoder = Decoder(step, loaded.reset, context, outputs[0].shape[-1], where)
    name, size = _chunk_method(loaded)
    if not name:
        return decoder
    plan = loaded.methods[name]

    def chunk(tokens: Sequence[int], position: int) -> Any:
        rows = (list(tokens), list(range(position, position + size)))
        given = (
            torch.tensor(row, dtype=getattr(torch, one.dtype)).reshape(one.shape)
            for one, row in zip(plan.inputs, rows, strict=True)
        )
        return loaded.run_method(name, *given)[0].numpy()

    decoder.chunk, decoder.chunk_size = chunk, size
    return decoder


def _chunk_method(loaded: LoadedProgram) -> tuple[str, int]:
    """Return the method that takes the most tokens with their positions, and how many; ("", 0) where there is none."""
    found = ("", 0)
    for name, plan in loaded.methods.items():
        sizes = {math.prod(one.shape) for one in plan.inputs if one.dtype in _INTEGERS}
        same = (
            len(plan.inputs) == 2 and len(sizes) == 1 and [one.dtype for one in plan.inputs if one.dtype in _INTEGERS]
        )
        if same and len(same) == 2 and plan.outputs and max(sizes) > max(found[1], 1):
            found = name, max(sizes)
    return found


def _is_one_integer(dtype: str, shape: tuple[int, ...]) -> bool:
    return dtype in _INTEGERS and all(size == 1 for size in shape)


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
