"""Weights from safetensors files: mapped into memory, checked against a module, and put into it. Nothing is unpickled.

A file is the length of its header in 8 bytes, the header in JSON (type, shape and place of each tensor), and the tensors. A
large model has several and `model.safetensors.index.json`, which says where each tensor is.

Example:
    >>> with torch.device("meta"):
    ...     model = Decoder()
    >>> load_weights(model, "model.safetensors")
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import Any, Final, TypeGuard

import torch
from torch import nn

from openneutron.errors import FormatError, OptionError

_TYPES: Final = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
    "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
    "U16": torch.uint16, "U32": torch.uint32, "U64": torch.uint64, "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
}  # fmt: skip
_LENGTH: Final = 8  # bytes in front of the header
_LARGEST_HEADER: Final = 100_000_000  # bytes, as in the format's own reader
_INDEX: Final = "model.safetensors.index.json"
_AGAIN: Final = "copy or download the file again"
_SHOWN: Final = 3  # names in a message

Rename = Callable[[str], str | None]


def load_weights(module: nn.Module, source: str | os.PathLike[str], *, rename: Rename | None = None) -> nn.Module:
    """Put the weights of a safetensors file into a module, which is returned.

    `source` is a file, an index of several, or the folder of either. Parameters and buffers of the module get the tensors of
    their names; `rename` gives the module's name for a name in the file, or None for a tensor to leave out. Tensors of the
    module's type stay in the file, mapped into memory, so a module made on the device "meta" takes none of its own. Parameters
    that share their data need one tensor. Nothing changes unless every parameter is found and every tensor used.
    """
    found: dict[str, tuple[torch.Tensor, str]] = {}
    for path in _files(Path(source)):
        for name, tensor in read_tensors(path).items():
            place = rename(name) if rename is not None else name
            if place is not None:
                found[place] = tensor, f"{path}, tensor {name!r}"
    wanted = module.state_dict(keep_vars=True)
    _check_names(wanted, found, str(source))
    _check_own(module, wanted)
    made = {name: _fit_tensor(wanted[name], *given) for name, given in found.items()}
    for group in _shared_names(wanted):
        first = next((made[name] for name in group if name in made), None)
        if first is not None:
            _put(module, group, first, wanted[group[0]])
    return module


def read_tensors(path: str | os.PathLike[str]) -> dict[str, torch.Tensor]:
    """Return the tensors of a safetensors file by name, mapped into memory; changing one does not change the file.

    Example:
        >>> read_tensors("model.safetensors")["lm_head.weight"].shape
    """
    where = os.fspath(path)
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < _LENGTH:
                raise FormatError(
                    f"it has {size} bytes, no safetensors file has fewer than 8", where=where, hint=_AGAIN
                )
            view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    except OSError as error:
        raise FormatError(f"it cannot be read: {error.strerror or error}", where=where) from error
    length = int.from_bytes(view[:_LENGTH], "little")
    if length > min(size - _LENGTH, _LARGEST_HEADER):
        raise FormatError(
            f"its header would have {length} bytes of the file's {size}", where=f"{where}, byte 0",
            hint="it is no safetensors file, or its end is missing",
        )  # fmt: skip
    header = _parse_header(bytes(view[_LENGTH : _LENGTH + length]), where)
    content = view[_LENGTH + length :]
    _check_places(header, len(content), where, _LENGTH + length)
    return {name: _tensor(content, entry) for name, entry in header.items()}


def _parse_header(text: bytes, where: str) -> dict[str, tuple[torch.dtype, list[int], int, int]]:
    where = f"{where}, byte {_LENGTH}"
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"its header is no JSON ({error})", where=where, hint=_AGAIN) from None
    if not isinstance(raw, dict):
        raise FormatError("its header is no JSON object", where=where, hint=_AGAIN)
    raw.pop("__metadata__", None)
    return {str(name): _entry(entry, f"{where}, tensor {name!r}") for name, entry in raw.items()}


def _entry(entry: Any, where: str) -> tuple[torch.dtype, list[int], int, int]:
    """Return type, shape, begin and end of a tensor."""
    given = entry if isinstance(entry, dict) else {}
    kind, shape, place = given.get("dtype"), given.get("shape"), given.get("data_offsets")
    if not isinstance(kind, str) or kind not in _TYPES:
        raise FormatError(f"its type is {kind!r}", where=where, hint=f"known types: {', '.join(_TYPES)}")
    if not _are_sizes(shape) or not _are_sizes(place) or len(place) != 2:
        raise FormatError(f"its shape is {shape!r} and its place {place!r}", where=where, hint=_AGAIN)
    begin, end = place
    needed = prod(shape) * _TYPES[kind].itemsize
    if end - begin != needed:
        raise FormatError(
            f"it takes {end - begin} bytes, {kind} of shape {shape} needs {needed}", where=where, hint=_AGAIN
        )
    return _TYPES[kind], shape, begin, end


def _are_sizes(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(one) is int and 0 <= one < 1 << 63 for one in value)


def _check_places(header: dict[str, Any], size: int, where: str, start: int) -> None:
    """Raise a `FormatError` unless the tensors lie one after another and fill the file."""
    reached = 0
    for name, (_, _, begin, end) in sorted(header.items(), key=lambda one: one[1][2:]):
        if begin != reached:
            raise FormatError(
                f"tensor {name!r} begins at byte {begin}, the one before it ends at {reached}",
                where=f"{where}, byte {start + reached}", hint=_AGAIN,
            )  # fmt: skip
        reached = end
    if reached != size:
        what = "its end is missing" if reached > size else "something follows its last tensor"
        raise FormatError(
            f"its tensors have {reached} bytes and the file has {size} for them: {what}",
            where=f"{where}, byte {start + min(reached, size)}", hint=_AGAIN,
        )  # fmt: skip


def _tensor(content: memoryview, entry: tuple[torch.dtype, list[int], int, int]) -> torch.Tensor:
    dtype, shape, begin, end = entry
    if begin == end:
        return torch.empty(shape, dtype=dtype)
    part = torch.frombuffer(content[begin:end], dtype=torch.uint8)
    aligned = part if part.data_ptr() % dtype.itemsize == 0 else part.clone()
    return aligned.view(dtype).reshape(shape)


def _files(source: Path) -> list[Path]:
    """Return the files of a model."""
    if source.is_dir():
        index, single = source / _INDEX, source / "model.safetensors"
        if index.is_file() or single.is_file():
            return _files(index if index.is_file() else single)
        raise OptionError("no model.safetensors is in this folder", where=str(source), hint="name the file")
    if not source.is_file():
        raise OptionError("there is no such file", where=str(source))
    if source.suffix != ".json":
        return [source]
    try:
        names = set(json.loads(source.read_bytes())["weight_map"].values())
        paths = [source.parent / name for name in sorted(names)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FormatError("it is no index of safetensors files: it has no weight_map", where=str(source)) from None
    for path in paths:
        if path.parent != source.parent or not path.is_file():
            raise FormatError(f"it names {path.name!r}, which is not beside it", where=str(source), hint=_AGAIN)
    return paths


def _check_own(module: nn.Module, wanted: Mapping[str, torch.Tensor]) -> None:
    """Raise an `OptionError` where the module was made without values for what no file has."""
    empty = [name for name, one in module.named_buffers() if one.is_meta and name not in wanted]
    if empty:
        raise OptionError(
            f'{_list_names(empty)}: the module computes these itself, and on the device "meta" they have no values',
            hint="make the module on the CPU, or set them after loading and make them persistent",
        )


def _shared_names(wanted: Mapping[str, torch.Tensor]) -> list[list[str]]:
    """Return the names of each tensor of a module."""
    groups: dict[int, list[str]] = {}
    for name, tensor in wanted.items():
        groups.setdefault(id(tensor), []).append(name)
    return list(groups.values())


def _check_names(wanted: Mapping[str, torch.Tensor], found: Mapping[str, Any], where: str) -> None:
    missing = [group[0] for group in _shared_names(wanted) if not any(name in found for name in group)]
    spare = [name for name in found if name not in wanted]
    if missing or spare:
        parts = [f"no tensor for {_list_names(missing)}"] * bool(missing) + [
            f"the module has no {_list_names(spare)}"
        ] * bool(spare)
        raise FormatError(
            f"its tensors are not the module's: {'; '.join(parts)}", where=where,
            hint="rename=lambda name: ... gives the module's name for a name in the file, or None to leave it out",
        )  # fmt: skip


def _list_names(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _fit_tensor(place: torch.Tensor, given: torch.Tensor, where: str) -> torch.Tensor:
    """Return a tensor in the type of its place in the module; the shape must be the same."""
    if place.shape != given.shape:
        raise FormatError(
            f"its shape is {list(given.shape)}, the module's {list(place.shape)}", where=where,
            hint="make the module with the sizes of the file's model (its config.json)",
        )  # fmt: skip
    if given.dtype != place.dtype and not (given.is_floating_point() and place.is_floating_point()):
        raise FormatError(f"it is {given.dtype}, the module's is {place.dtype}", where=where)
    return given.to(place.dtype)


def _put(module: nn.Module, names: list[str], tensor: torch.Tensor, like: torch.Tensor) -> None:
    value = nn.Parameter(tensor, requires_grad=like.requires_grad) if isinstance(like, nn.Parameter) else tensor
    for name in names:
        path, _, last = name.rpartition(".")
        setattr(module.get_submodule(path), last, value)
