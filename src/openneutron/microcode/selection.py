"""Kernel selection: C source whose table of kernels replaces the firmware's full one at link time.

The firmware library defines `neutronKernels` weakly, with every kernel. A selection defines it strongly with the kernels
some models need, so the linker leaves the others out of the image. Selections of several models merge into one.

Example:
    >>> Path("model_kernel_selection.c").write_text(selection_code([1, 4], "imxrt700", "0.1.0"))
    >>> merge_files(["a_kernel_selection.c", "b_kernel_selection.c"], "kernel_selection.c")
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from openneutron.errors import FormatError, OptionError
from openneutron.files import read_file, write_file
from openneutron.microcode import abi

_TITLE = "Kernel selection made by OpenNeutron. Not to be edited: tools check the checksum below."
_NAME = r"[\w.+-]+"
_CHECKSUM = r"^ \* checksum: ([0-9A-F]{8})\n"
# What every selection holds, ours or NXP's; without both it is some other C file.
_MARKS = ("typedef enum NeutronKernelKind", "int32_t (*neutronKernels[")
_AGAIN = "export the model again to get a fresh selection"


@dataclass(frozen=True)
class Selection:
    """The content of a selection file: kernel names by id, and who made it for what."""

    kernels: dict[int, str]
    target: str
    converter_version: str


def selection_code(kernel_ids: Iterable[int], target: str, converter_version: str) -> str:
    """The C source that registers just these kernels.

    Example:
        >>> "nk_conv2d" in selection_code([1], "imxrt700", "0.1.0")
        True
    """
    kernels = {number: abi.by_id(number).name for number in sorted(set(kernel_ids))}
    return render(Selection(kernels, target, converter_version))


def render(selection: Selection) -> str:
    """Return a kernel selection as C source with its checksum."""
    kernels = sorted(selection.kernels.items())
    listed = " ".join(f"{name}={number}" for number, name in kernels)
    head = [
        f"/* {_TITLE}",
        f" * converter: openneutron {selection.converter_version}",
        f" * target: {selection.target}",
        f" * kernels: {listed}".rstrip(),
    ]
    body = [
        " */",
        '#include "nk.h"',
        "",
        "typedef enum NeutronKernelKind {",
        *(f"    NeutronKernelKind_{name} = {number}," for number, name in kernels),
        "    NeutronKernelKind_limit = NEUTRON_KERNEL_LIMIT",
        "} NeutronKernelKind;",
        "",
        *(
            f'_Static_assert(NEUTRON_KERNEL_{name.upper()} == {number}, "the firmware is of another converter version");'
            for number, name in kernels
        ),
        "",
        *(f"int32_t nk_{name}(uint32_t verb, nk_call *call);" for _, name in kernels),
        "",
        "int32_t (*neutronKernels[NEUTRON_KERNEL_LIMIT])(uint32_t verb, nk_call *call) = {",
        *(f"    [NeutronKernelKind_{name}] = nk_{name}," for _, name in kernels),
        # C11 has no empty initializer; id 0 is no kernel.
        *([] if kernels else ["    [0] = NULL,"]),
        "};",
        "const uint32_t neutronKernelCount = NEUTRON_KERNEL_LIMIT;",
    ]
    start, rest = "".join(f"{line}\n" for line in head), "".join(f"{line}\n" for line in body)
    return f"{start} * checksum: {_checksum(start + rest)}\n{rest}"


def is_ours(text: str) -> bool:
    """Whether the text begins as our selections do; NXP's converter writes others."""
    return text.startswith(f"/* {_TITLE}")


def parse(name: str, text: str) -> Selection:
    """Read a selection file; a `FormatError` says what is wrong with it. `name` is what errors show."""
    # Version control may change line ends; that is no edit.
    text = text.replace("\r\n", "\n")
    if not text.startswith(f"/* {_TITLE}\n"):
        if all(mark in text for mark in _MARKS):
            raise FormatError(
                "the selection was not made by this OpenNeutron",
                where=name,
                hint="merge selections of NXP's converter with NXP's own tool, and export others again",
            )
        raise FormatError("this is no kernel selection", where=name, hint="give *_kernel_selection.c files")
    found = re.search(_CHECKSUM, text, re.MULTILINE)
    if found is None or _checksum(text[: found.start()] + text[found.end() :]) != found.group(1):
        raise FormatError("the selection was edited or damaged: its checksum does not match", where=name, hint=_AGAIN)
    lines = dict(line[3:].split(":", 1) for line in text[: found.start()].splitlines()[1:])
    kernels: dict[int, str] = {}
    # What is read here becomes C source again: anyone can write a checksum, so names must be names.
    try:
        for item in lines["kernels"].split():
            kernel, number = item.split("=")
            kernels[int(number)] = kernel
        target, converter = lines["target"].strip(), lines["converter"].strip().removeprefix("openneutron ")
    except (KeyError, ValueError):
        raise FormatError("the selection's first lines are not ours", where=name, hint=_AGAIN) from None
    if not all(re.fullmatch(_NAME, one, re.ASCII) for one in (*kernels.values(), target, converter)):
        raise FormatError("the selection holds something that is no name", where=name, hint=_AGAIN)
    return Selection(kernels, target, converter)


def merge(files: Sequence[tuple[str, str]]) -> str:
    """One selection for several models, from (name, text) pairs.

    Example:
        >>> code = merge([("a.c", Path("a.c").read_text()), ("b.c", Path("b.c").read_text())])
    """
    if not files:
        raise OptionError("there is no selection to merge", hint="give at least one *_kernel_selection.c file")
    kernels: dict[int, str] = {}
    seen: set[str] = set()
    first = parse(*files[0])
    for name, text in files:
        if name in seen:
            raise OptionError("the file is given twice", where=name, hint="name each selection once")
        seen.add(name)
        one = parse(name, text)
        for what, mine, other in (
            ("converter version", one.converter_version, first.converter_version),
            ("target", one.target, first.target),
        ):
            if mine != other:
                raise OptionError(
                    f"{what} {mine} differs from {other} of {files[0][0]}",
                    where=name,
                    hint="export all models with the same OpenNeutron, for the same target",
                )
        kernels.update(one.kernels)
    return render(Selection(kernels, first.target, first.converter_version))


def merge_files(paths: Sequence[str | os.PathLike[str]], output: str | os.PathLike[str]) -> None:
    """Merge selection files into `output`, which stays as it was when anything is wrong.

    Example:
        >>> merge_files(["a_kernel_selection.c", "b_kernel_selection.c"], "kernel_selection.c")
    """
    names = [os.fspath(path) for path in paths]
    real: dict[str, str] = {}
    for name in names:
        other = real.setdefault(os.path.realpath(name), name)
        if other != name or names.count(name) > 1:
            raise OptionError("the file is given twice", where=name, hint="name each selection once")
    if os.path.realpath(output) in real:
        raise OptionError("the output is also an input", where=os.fspath(output), hint="write to another file")
    files: list[tuple[str, str]] = []
    for name in names:
        try:
            files.append((name, read_file(name).decode("utf-8")))
        except UnicodeDecodeError as error:
            raise FormatError(
                f"byte {error.start} is no text", where=name, hint="this is no kernel selection"
            ) from None
    write_file(output, merge(files))


def _checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08X}"
