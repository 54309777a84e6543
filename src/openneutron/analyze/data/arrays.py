"""Reading and writing of arrays: `.npy` for one, `.npz` for several by name."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron import environment
from openneutron.errors import FormatError, OptionError
from openneutron.files import read_file, write_file
from openneutron.terminal.escapes import printable

Array = npt.NDArray[Any]

# How far a compressed file may expand: real data compresses to a hundredth at most; small files may expand further.
LARGEST_UNPACKED, LARGEST_RATIO = 1 << 30, 100


def check_unpacked(unpacked: int, packed: int, where: str) -> None:
    """Refuse a file that declares an excessive unpacked size: a decompression bomb."""
    lifted = environment.memory(LARGEST_UNPACKED)
    if lifted and unpacked > max(lifted, LARGEST_RATIO * packed):
        raise FormatError(
            f"its {packed:,} bytes would become {unpacked:,}", where=where,
            hint=f"if that is right, {environment.MEMORY} allows more bytes, 0 any number",
        )  # fmt: skip


def read_arrays(path: Path) -> dict[str, Array] | list[Array]:
    """Return the arrays of a file: a list if they have no names of their own (`.npy`, or `np.savez` without keywords)."""
    data = read_file(path)
    try:
        if zipfile.is_zipfile(io.BytesIO(data)):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                check_unpacked(sum(one.file_size for one in archive.infolist()), len(data), str(path))
        loaded = np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, MemoryError) as error:
        # numpy treats anything unknown as a pickle, and its error advises to load that.
        cause = "" if "pickle" in str(error) else f" ({error})"
        hint = "write it with np.save or np.savez, without objects"
        raise FormatError(f"this is no .npy or .npz file{cause}", where=str(path), hint=hint) from error
    if isinstance(loaded, np.ndarray):
        return [loaded]
    try:
        arrays = {name: loaded[name] for name in loaded.files}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error, MemoryError) as error:
        raise FormatError(f"an array of the .npz file cannot be read ({error})", where=str(path)) from error
    if arrays and all(re.fullmatch(r"(arr|input)_\d+", name) for name in arrays):
        return [arrays[name] for name in sorted(arrays, key=lambda name: int(name.rpartition("_")[2]))]
    return arrays


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays by name as `.npz`; a single one may also go to a `.npy` file."""
    buffer = io.BytesIO()
    if path.suffix == ".npy":
        if len(arrays) != 1:
            raise OptionError(f"{len(arrays)} outputs do not fit a .npy file", where=str(path), hint="name a .npz file")
        np.save(buffer, next(iter(arrays.values())))
    else:
        # Not np.savez: it takes names as keywords, and an output may be called "file".
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, value in arrays.items():
                with archive.open(f"{_member(name)}.npy", "w") as entry:
                    np.lib.format.write_array(entry, np.asanyarray(value), allow_pickle=False)
    write_file(path, buffer.getvalue())


def _member(name: str) -> str:
    """Return an output's name as a safe file name in an archive, so that unpacking stays in the folder."""
    return "/".join("_" if part == ".." else part for part in printable(name).lstrip("/").split("/"))
