"""Make a project from a model: compile it where it is not compiled yet, check its sizes, collect its files.

Example:
    >>> project = make("model.tflite", platform="cmake", board="cortex-m33")
    >>> project.files["README.md"][:7]
    b'# model'
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from openneutron.api import compile
from openneutron.cli.inputs.loading import compile_source
from openneutron.compiler import kernels
from openneutron.errors import OptionError
from openneutron.executorch.deliver.embed import Border
from openneutron.files import kind_of, read_file
from openneutron.microcode.graph_op import CUSTOM_CODE
from openneutron.program import Program
from openneutron.project import boards
from openneutron.project.cmake import cmake_files
from openneutron.project.content import Content, make_content
from openneutron.project.mcuxpresso import mcuxpresso_files
from openneutron.project.npu import NpuModel, check_npu_sizes, npu_model
from openneutron.project.npu_program import npu_program
from openneutron.project.open_model import open_model
from openneutron.project.samples import Array, agrees_with_litert
from openneutron.project.sizes import Sizes, check_sizes
from openneutron.project.write import check_folder, write_files
from openneutron.project.zephyr import zephyr_files

# The kernels' loops on a core are those of this target, whatever chip the core is in.
CORE_TARGET = "cortex_m33"
PLATFORMS: dict[str, Callable[[Content], dict[str, bytes]]] = {
    "cmake": cmake_files,
    "zephyr": zephyr_files,
    "mcuxpresso": mcuxpresso_files,
}
_NOT_BUILT = ("made from the platform's public interface and not built with it; README.md says what was compiled",)


@dataclass(frozen=True)
class Project:
    """A project's files by path, what it is for, and the memory it takes."""

    files: dict[str, bytes]
    title: str
    platform: str
    board: boards.Board
    sizes: Sizes
    samples: int
    reference: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Written:
    """What `write` returns: the project, and the paths of its files."""

    project: Project
    files: list[Path]


def make(
    model: str | os.PathLike[str] | Program,
    *,
    platform: str,
    board: str,
    inputs: Sequence[Path] = (),
    samples: int = 2,
    seed: int = 0,
    sizes: Sequence[str] = (),
    calibration: str = "",
    trust: bool = False,
    npu: Path | None = None,
    converter: str = "open",
    command: str = "",
    progress: Callable[[str], None] | None = None,
    **options: Any,
) -> Project:
    """Return a project for a board: `model` is a compiled .tflite or .pte, a `Program`, or whatever can be compiled.

    `platform` is a key of `PLATFORMS`. `inputs` are files with one sample each; without them there are `samples` random ones.
    `sizes`, `calibration`, `trust` and `options` are those of a compile. `npu` is what NXP's converter made of the model, for a
    build with NXP's library; `converter="nxp"` makes it.

    Example:
        >>> make(program, platform="cmake", board="cortex-m55").sizes.ram_bytes
    """
    stage = progress or (lambda text: None)
    if platform not in PLATFORMS:
        raise OptionError(f"unknown platform {platform!r}", hint=f"--for {' | '.join(PLATFORMS)}")
    found = boards.load(board)
    kernels.rules()  # kernels declare their parameters when their files are imported
    npu_part = None
    if npu is not None or converter != "open":
        stage("reading what NXP's converter made")
        npu_part = _npu_model(model, npu, converter, platform, found, inputs=inputs, count=samples, seed=seed)
    data, title, source = _compile(model, stage, {"sizes": sizes, "calibration": calibration, "trust": trust}, options)
    stage("computing the expected outputs")
    open_part = open_model(data, title)
    given = [_sample(path, open_part.border) for path in inputs]
    content = make_content(
        open_part, found, given, title=title, command=command, npu=npu_part, count=samples, seed=seed
    )
    check_sizes(content.sizes, found)
    if source is not None and agrees_with_litert(read_file(source), str(source), open_part.border, content.samples):
        content = replace(content, reference="LiteRT's reference kernels, and this machine's simulator")
    return Project(
        PLATFORMS[platform](content), title, platform, found, content.sizes, len(content.samples), content.reference,
        notes=(*_methods_note(open_part.methods), *(_NOT_BUILT if platform != "cmake" else ())),
    )  # fmt: skip


def write(
    model: str | os.PathLike[str] | Program, folder: str | os.PathLike[str], *, force: bool = False, **options: Any
) -> Written:
    """Make a project and write it into a folder, which appears complete or not at all; `options` are those of `make`."""
    target = Path(folder)
    check_folder(target, force=force)
    project = make(model, **options)
    return Written(project, write_files(project.files, target, force=force))


def _compile(
    model: str | os.PathLike[str] | Program,
    stage: Callable[[str], None],
    loading: dict[str, Any],
    options: dict[str, Any],
) -> tuple[bytes, str, Path | None]:
    """The bytes of the compiled file, what the model is called, and the quantized LiteRT file it came from."""
    if isinstance(model, Program):
        return model.data, model.report.source or "model", None
    text = os.fspath(model)
    title = Path(text).name if Path(text).suffix else text
    if Path(text).is_file():
        data = read_file(text)
        if kind_of(data) == "pte" or (kind_of(data) == "tflite" and CUSTOM_CODE.encode() in data):
            if options:
                raise OptionError(f"{', '.join(options)}: it is compiled already", where=text, hint="leave options out")
            return data, title, None
    if not text.endswith(".tflite"):
        options = {"int8_io": True, **options}
    program, _ = compile_source(text, stage, **loading, **{"target": CORE_TARGET, **options})
    quantized = text.endswith(".tflite") and not loading["calibration"]
    return program.data, title, Path(text) if quantized else None


def _methods_note(left: Sequence[str]) -> tuple[str, ...]:
    return (f"the program's forward alone is in it, without {' and '.join(left)}",) if left else ()


def _npu_model(
    model: str | os.PathLike[str] | Program,
    npu: Path | None,
    converter: str,
    platform: str,
    board: boards.Board,
    **samples: Any,
) -> NpuModel:
    """What NXP's converter made of the model: from a file, or made now."""
    if platform == "cmake":
        raise OptionError("NXP's library is no part of a bare-metal project", hint="use --for zephyr or mcuxpresso")
    source = None if isinstance(model, Program) else Path(model)
    if source is None or source.suffix not in (".tflite", ".pte") or not source.is_file():
        raise OptionError(
            "a build with NXP's library is made of a LiteRT model or of an ExecuTorch program",
            hint="give the quantized .tflite file as the model, or a .pte that the open converter compiled",
        )
    if npu is not None:
        data, where = read_file(npu), str(npu)
    elif source.suffix == ".tflite":
        data, where = compile(source, target=board.chip, converter=converter).tflite, f"{source} by NXP's converter"
    else:
        raise OptionError(
            "a .pte is compiled already", where=str(source),
            hint="compile its source with --converter nxp, and name that file with --npu-model",
        )  # fmt: skip
    if source.suffix == ".pte":
        if platform != "mcuxpresso" or board.npu_pools is None:
            raise OptionError(
                "NXP has ExecuTorch for i.MX RT700 in MCUXpresso SDK only", where=board.name,
                hint="use --for mcuxpresso --board mimxrt700evk, or LiteRT files",
            )  # fmt: skip
        made = npu_program(data, where, source, board, **samples)
    else:
        made = npu_model(data, where, source, board, **samples)
    check_npu_sizes(made, board)
    return made


def _sample(path: Path, border: Border) -> list[Array]:
    """One sample of a file, in the order of the model's inputs."""
    from openneutron.analyze.data.arrays import read_arrays
    from openneutron.cli.extract_payload import arrays_in_order

    return arrays_in_order(read_arrays(path), border.inputs, str(path))
