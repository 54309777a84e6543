"""Comparison of two values of one tensor, from the original and from a rewritten graph, up to float rounding."""

from __future__ import annotations

import math
from typing import Any, Final

import torch

ROUNDING_DB: Final = 60.0  # float32 has 140 dB; reordered chains of operators stay far above 60
# Per element: 1 % of its own size or 100 roundings of the largest element, whichever is more.
_RELATIVE: Final = 1e-2
_ABSOLUTE: Final = 1e-5
# A zero of the model may become a few roundings of the largest value, as in the tails of exp and erf.
_ZERO: Final = 1e-6
# Comparisons and indices may flip where two values are equal up to rounding, which is rare.
_FLIPPED: Final = 1e-3
# Of more elements, up to this share, a difference is rounding if all others differ about as much: chains that subtract large
# sums round coarsely, and values near 0 show it.
_FEW: Final = 1e-2
_AS_OTHERS: Final = 8.0  # times the root of the mean square of the others' differences


def difference(wanted: Any, found: Any) -> str:
    """Describe the difference beyond float rounding, in words; "" for equal values.

    Positions where the model itself has NaN are not compared: they have no correct value.

    Example:
        >>> difference(torch.ones(4), torch.full((4,), 1.5))
        '6.0 dB'
    """
    if not isinstance(wanted, torch.Tensor) or not isinstance(found, torch.Tensor):
        return "" if type(wanted) is type(found) else f"{type(found).__name__} instead of {type(wanted).__name__}"
    if wanted.shape != found.shape:
        return f"shape {list(found.shape)} instead of {list(wanted.shape)}"
    if not wanted.is_floating_point():
        flipped = int((wanted != found).sum())
        return f"{flipped} of {wanted.numel()} values differ" if flipped > _FLIPPED * wanted.numel() else ""
    return _of_numbers(wanted.detach().double().reshape(-1), found.detach().double().reshape(-1))


def _of_numbers(wanted: torch.Tensor, found: torch.Tensor) -> str:
    known = ~torch.isnan(wanted)
    if not bool(known.all()):
        wanted, found = wanted[known], found[known]
    if not wanted.numel():
        return ""
    if bool(torch.isnan(found).any()):
        return "NaN where the model has numbers"
    finite = torch.isfinite(wanted)
    if not bool(finite.all()) or not bool(torch.isfinite(found).all()):
        if bool((torch.isfinite(found) != finite).any()) or bool((wanted[~finite] != found[~finite]).any()):
            return "infinities in other places"
        wanted, found = wanted[finite], found[finite]
        if not wanted.numel():
            return ""
    apart = (wanted - found).abs()
    noise = float(apart.square().sum())
    if not noise:
        return ""
    signal = float(wanted.square().sum())
    decibels = 10 * math.log10(signal / noise) if signal else -math.inf
    if decibels < ROUNDING_DB:
        return f"{decibels:.1f} dB"
    largest = float(wanted.abs().amax())
    if bool((apart[wanted == 0] > _ZERO * largest).any()):
        return "numbers where the model has zeros"
    far = apart > _RELATIVE * wanted.abs() + _ABSOLUTE * largest
    beyond = int(far.sum())
    if beyond <= _FLIPPED * wanted.numel() or _is_like_others(apart, far):
        return ""
    return f"{beyond} of {wanted.numel()} values differ"


def _is_like_others(apart: torch.Tensor, far: torch.Tensor) -> bool:
    """Return whether a few differences are about as large as those of all other elements."""
    if int(far.sum()) > _FEW * far.numel():
        return False
    return bool((apart[far] <= _AS_OTHERS * apart[~far].square().mean().sqrt()).all())
