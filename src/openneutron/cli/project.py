"""`openneutron project`: a folder that builds a model into a program for a board."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openneutron.cli.inputs.loading import CALIBRATION_HELP, SIZE_HELP, TRUST_HELP
from openneutron.cli.shared.completion import model_names

if TYPE_CHECKING:
    from openneutron.project.make import Project

_MODEL_HELP = "A compiled .tflite or .pte file, or what `openneutron compile` takes."
_BOARD_HELP = (
    "frdmmcxn947, mcxn9xxevk, mimxrt700evk, frdmimxrt700, mimxrt2660evk or a name of theirs in Zephyr; for cmake also "
    "cortex-m33, cortex-m4, cortex-m7, cortex-m55, cortex-m85 on QEMU."
)
_NPU_HELP = "What NXP's converter made of the model (.tflite): adds the build with NXP's Neutron library."


def make_project(
    model: Annotated[str, typer.Argument(help=_MODEL_HELP, autocompletion=model_names)],
    platform: Annotated[
        str, typer.Option("--for", metavar="PLATFORM", help="What builds it: cmake, zephyr or mcuxpresso.")
    ],
    board: Annotated[str, typer.Option(metavar="BOARD", help=_BOARD_HELP)],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to make.")],
    input: Annotated[
        list[Path] | None,
        typer.Option("--input", "-i", help="A sample for the self-test (.npy, or .npz by input name); repeatable."),
    ] = None,
    samples: Annotated[int, typer.Option(metavar="COUNT", min=1, help="Random samples, without --input.")] = 2,
    seed: Annotated[int, typer.Option(metavar="SEED", min=0, help="Seed of the first.")] = 0,
    npu_model: Annotated[Path | None, typer.Option(metavar="FILE", help=_NPU_HELP)] = None,
    converter: Annotated[
        str, typer.Option(help="nxp: run NXP's converter, of NXP's SDK, for that build; open: without it.")
    ] = "open",
    size: Annotated[list[str] | None, typer.Option(metavar="NAME=SIZE", help=SIZE_HELP)] = None,
    calibration: Annotated[str, typer.Option(help=CALIBRATION_HELP)] = "",
    trust: Annotated[bool, typer.Option("--trust", help=TRUST_HELP)] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a project in that folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write a folder with a model, the open runtime, build files and a self-test with expected outputs.

    The folder appears complete or not at all. A model that is too large for the board is refused with what is short.

    Examples:

    openneutron project cifarnet --for cmake --board cortex-m33 -o cifarnet_m33

    openneutron project model.tflite --for zephyr --board frdm_mcxn947 -o on_zephyr --input sample.npy

    openneutron project model.tflite --for mcuxpresso --board mimxrt700evk -o in_sdk --npu-model converted_by_nxp.tflite
    """
    from openneutron.project.make import write
    from openneutron.terminal import console

    words = ["openneutron project", Path(model).name, f"--for {platform} --board {board}"]
    words += [f"--input {path.name}" for path in input or ()] or [f"--samples {samples} --seed {seed}"]
    with console.progress("starting") as stage:
        written = write(
            model, output, force=force, platform=platform, board=board, inputs=input or (), samples=samples, seed=seed,
            npu=npu_model, converter=converter, sizes=size or (), calibration=calibration, trust=trust,
            command=" ".join(words), progress=stage,
        )  # fmt: skip
    if as_json:
        import json

        console.put(json.dumps(_as_json(written.project, written.files), indent=2))
        return
    for line in _summary(written.project, output):
        console.put(line)


def _as_json(project: Project, files: list[Path]) -> dict[str, object]:
    import dataclasses

    sizes = project.sizes
    return {
        "model": project.title, "platform": project.platform, "board": dataclasses.asdict(project.board),
        "sizes": dataclasses.asdict(sizes) | {"flash_bytes": sizes.flash_bytes, "ram_bytes": sizes.ram_bytes},
        "samples": project.samples, "reference": project.reference, "files": [str(file) for file in files],
        "notes": project.notes,
    }  # fmt: skip


def _summary(project: Project, folder: Path) -> list[str]:
    sizes, board = project.sizes, project.board
    rows = [
        ("flash", f"{sizes.flash_bytes:,} of {board.flash.bytes:,} bytes", "code at most"),
        ("  weights and microcode", f"{sizes.payload_bytes:,} bytes", ""),
        ("  samples", f"{sizes.sample_bytes:,} bytes", f"{project.samples}, outputs by {project.reference}"),
        ("RAM", f"{sizes.ram_bytes:,} of {board.ram.bytes:,} bytes", "stack and variables included"),
        ("  arena", f"{sizes.arena_bytes:,} bytes", ""),
        ("  inputs and outputs", f"{sizes.input_bytes + sizes.output_bytes:,} bytes", ""),
    ]
    lines = [f"{folder}: {project.title} for {board.description}, {project.platform}"]
    lines += [f"  {what:<24} {size:<32} {note}".rstrip() for what, size, note in rows]
    return [*lines, *(f"note: {note}" for note in project.notes), f"{folder / 'README.md'} has the commands"]
