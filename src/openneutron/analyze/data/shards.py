"""Labelled data in shards: parts that are read when needed, by the process that scores them.

| given | shards |
|---|---|
| folder with a folder per class | a number of files each, classes in turn |
| one `.npz` | a number of samples each |
| several `.npz` or WebDataset `.tar` files: a folder of them, `data-*.tar`, `data-{000..099}.tar` | a file each |
| `package.module:generator` | a number of samples each, read in the main process |

Example:
    >>> for shard in shards_of("train-{000..009}.tar", Wanted((3, 32, 32)), Reading()):
    ...     print(shard.name, len(shard.load()))
"""

from __future__ import annotations

import glob
import io
import json
import re
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.analyze.accuracy import Labelled
from openneutron.analyze.data.arrays import check_unpacked
from openneutron.analyze.data.labelled import (
    IMAGES,
    Wanted,
    class_files,
    image_sample,
    join_batches,
    numbers,
    of_files,
    read_data,
    read_generator,
    stack_samples,
)
from openneutron.errors import FormatError, OptionError

Array = npt.NDArray[Any]
SIZE = 256  # samples: seconds of work, and a few hundred megabytes of large images
_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")
_CLASSES = ("cls", "label", "class")


@dataclass(frozen=True)
class Reading:
    """Settings for reading: samples per shard, and image preprocessing."""

    size: int = SIZE
    limit: int = 0
    mean: str = ""
    std: str = ""


@dataclass(frozen=True)
class Shard:
    """A part of the data; `content` if it has been read already, else `load` reads it."""

    name: str
    load: Callable[[], Labelled]
    content: Labelled | None = None


def shards_of(given: str, wanted: Wanted, how: Reading) -> Iterator[Shard]:
    """Yield the shards at a path, a pattern of paths, or an import path, in order."""
    path = Path(given)
    several = _several(given)
    images = path.is_dir() or any(file.suffix == ".tar" for file in several)
    if (how.mean or how.std) and not images:
        raise OptionError("--mean and --std are for folders of images", where=given, hint="leave them out")
    mean, std = numbers("--mean", how.mean, 0.0), numbers("--std", how.std, 1.0)
    if several:
        for file in several:
            if file.suffix == ".tar":
                yield Shard(str(file), lambda file=file: _of_tar(file, wanted, mean, std))  # type: ignore[misc]
            else:
                yield Shard(str(file), lambda file=file: _of_npz(file, wanted))  # type: ignore[misc]
    elif path.is_dir():
        files = islice(class_files(path), how.limit or None)
        for at, part in enumerate(_parts(files, how.size)):
            yield Shard(
                f"{given}, part {at + 1}",
                lambda part=part: of_files(part, wanted, mean, std, where=given),  # type: ignore[misc]
            )
    elif path.exists():
        yield from split_shards(read_data(given, wanted, limit=how.limit), given, how.size)
    else:
        yield from _of_generator(given, how)


def split_shards(data: Labelled, name: str, size: int) -> Iterator[Shard]:
    """Split data in memory into shards."""
    for at in range(0, len(data), size):
        part = Labelled(data.x[at : at + size], data.y[at : at + size])
        yield Shard(f"{name}, samples {at:,} to {at + len(part):,}", lambda part=part: part)  # type: ignore[misc]


def _parts(items: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while part := list(islice(items, size)):
        yield part


def files_of(given: str) -> list[Path]:
    """Return all files that are read for the given data; none for a generator."""
    path = Path(given)
    several = _several(given)
    if several or not path.exists():
        return several
    return [file for file, _ in class_files(path)] if path.is_dir() else [path]


def _several(given: str) -> list[Path]:
    """Return the files of a folder of shards, a pattern or a range; [] for anything else."""
    path = Path(given)
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.suffix in (".tar", ".npz"))
    if path.suffix == ".tar" and path.is_file():
        return [path]
    found = _RANGE.search(given)
    if found:
        first, last = found.group(1), found.group(2)
        names = [f"{number:0{len(first)}}" for number in range(int(first), int(last) + 1)]
        return [Path(given[: found.start()] + name + given[found.end() :]) for name in names]
    files = [Path(one) for one in sorted(glob.glob(given))] if "*" in given else []
    if "*" in given and not files:
        raise OptionError("there is no such file", where=given, hint="the pattern matches nothing")
    return files


def _of_generator(given: str, how: Reading) -> Iterator[Shard]:
    """Yield the samples of a generator; it runs once, in this process, whatever the number of workers."""
    waiting: list[tuple[Array, Array]] = []
    count = total = 0
    for pair in read_generator(given):
        waiting.append(pair)
        count += len(pair[1])
        if count >= how.size:
            yield _collect(waiting, given, total)
            total, waiting, count = total + count, [], 0
        if how.limit and total + count >= how.limit:
            break
    if waiting or not total:
        yield _collect(waiting, given, total)


def _collect(pairs: list[tuple[Array, Array]], given: str, start: int) -> Shard:
    data = join_batches(pairs, given)
    return Shard(f"{given}, samples {start:,} to {start + len(data):,}", lambda: data, content=data)


def _of_npz(file: Path, wanted: Wanted) -> Labelled:
    if not file.is_file():  # otherwise such a name may be an import path
        raise OptionError("there is no such file", where=str(file))
    return read_data(str(file), wanted)


def _of_tar(file: Path, wanted: Wanted, mean: Array, std: Array) -> Labelled:
    """Load a WebDataset shard: members with one base name are a sample, `.cls` or a key of `.json` is its class."""
    found: list[tuple[Array, int]] = []
    try:
        for key, parts in _members(file):
            found.append((_value(parts, f"{file}, {key}", wanted, mean, std), _class(parts, f"{file}, {key}")))
    except FileNotFoundError:
        raise OptionError("there is no such file", where=str(file)) from None
    except (tarfile.TarError, EOFError, OSError) as error:
        raise FormatError(f"the archive cannot be read ({error})", where=str(file)) from error
    if not found:
        raise FormatError("the archive has no samples", where=str(file), hint="members: 000001.png and 000001.cls")
    return stack_samples(found, str(file))


def _members(file: Path) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Yield consecutive members with one base name, by their extensions; nothing is written to disk."""
    key = ""
    parts: dict[str, bytes] = {}
    with tarfile.open(file, "r|*") as archive:
        for member in archive:
            name = Path(member.name)
            stem, _, ending = name.name.partition(".")
            if not member.isfile() or not ending:
                continue
            here = str(name.parent / stem)
            if here != key and parts:
                yield key, parts
                parts = {}
            key = here
            check_unpacked(member.size, file.stat().st_size, f"{file}, {member.name}")
            stream = archive.extractfile(member)
            parts[ending.lower()] = stream.read() if stream is not None else b""
    if parts:
        yield key, parts


def _value(parts: dict[str, bytes], where: str, wanted: Wanted, mean: Array, std: Array) -> Array:
    for ending, data in parts.items():
        if ending == "npy":
            try:
                return np.asarray(np.load(io.BytesIO(data), allow_pickle=False))
            except (ValueError, EOFError, MemoryError) as error:
                raise FormatError(f"the array cannot be read ({error})", where=where) from error
        if f".{ending.rpartition('.')[2]}" in IMAGES:
            return image_sample(io.BytesIO(data), where, wanted, mean, std)
    raise FormatError(f"it has {', '.join(parts)}, and no image or .npy", where=where)


def _class(parts: dict[str, bytes], where: str) -> int:
    try:
        if "cls" in parts:
            return int(parts["cls"].decode())
        described = json.loads(parts.get("json", b"{}"))
        for name in _CLASSES:
            if name in described:
                return int(described[name])
    except (ValueError, TypeError) as error:
        raise FormatError(f"its class cannot be read ({error})", where=where) from error
    raise FormatError("it has no class", where=where, hint="a member .cls with a number, or .json with cls or label")
