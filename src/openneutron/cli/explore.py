"""`openneutron explore`: a model or compiled file in Model Explorer, by module and down to kernel calls."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openneutron.cli.inputs.loading import CALIBRATION_HELP, SIZE_HELP, TRUST_HELP
from openneutron.cli.shared.completion import model_names, target_names
from openneutron.options import DEFAULT_TARGET

if TYPE_CHECKING:
    from collections.abc import Callable

    from openneutron.explore.drawing import Drawing

_HOST = "127.0.0.1"


def explore_model(
    source: Annotated[
        str,
        typer.Argument(
            help="What `openneutron compile` takes, or a compiled .pte or .tflite.", autocompletion=model_names
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FOLDER", help="Write the files that Model Explorer opens, and stop."),
    ] = None,
    target: Annotated[
        str, typer.Option(metavar="CHIP", help="The chip to compile for.", autocompletion=target_names)
    ] = DEFAULT_TARGET,
    size: Annotated[list[str] | None, typer.Option(metavar="NAME=SIZE", help=SIZE_HELP)] = None,
    calibration: Annotated[str, typer.Option(help=CALIBRATION_HELP)] = "",
    accuracy: Annotated[bool, typer.Option(help="Run it, for each layer's SQNR against float.")] = True,
    trust: Annotated[bool, typer.Option("--trust", help=TRUST_HELP)] = False,
    port: Annotated[int, typer.Option(metavar="PORT", min=1, max=65535, help="Port of Model Explorer's page.")] = 8080,
    browser: Annotated[bool, typer.Option(help="Open the browser; otherwise only serve the page.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the graphs as JSON, and stop.")] = False,
) -> None:
    """Show a graph in Google's Model Explorer: modules, delegates opened into calls, and overlays for cycles, SQNR and memory.

    A model is compiled first; a compiled file is shown as it is. Model Explorer comes with `openneutron[model-explorer]`; with
    -o or --json it is not needed here.

    Examples:

    openneutron explore cifarnet

    openneutron explore model.pte -o graphs
    """
    import json
    import tempfile

    from openneutron.explore.drawing import collection
    from openneutron.extras import extra
    from openneutron.machine import targets
    from openneutron.terminal import console

    if output is None and not as_json:
        with extra("`openneutron explore` without -o"):
            import model_explorer  # noqa: F401  said before minutes of compiling, not after
    with console.progress("starting") as stage:
        model = {"sizes": size or (), "calibration": calibration, "trust": trust}
        name, drawings = _drawings(source, stage, targets.canonical_name(target), model, accuracy=accuracy)
    if as_json:
        console.put(json.dumps(collection(name, drawings), indent=2))
    elif output is not None:
        for path in _write(name, drawings, output):
            console.put(f"{path}: {path.stat().st_size:,} bytes")
    else:
        with tempfile.TemporaryDirectory(prefix="openneutron-explore-") as folder:
            _serve(_write(name, drawings, Path(folder)), port, browser=browser)


def _drawings(
    source: str, stage: Callable[[str], None], target: str, model: dict[str, Any], *, accuracy: bool
) -> tuple[str, list[Drawing]]:
    """Return a name and the drawings: those of a compiled file, or of a compile and its file."""
    from openneutron.cli.inputs.blocks import blocks_of_file
    from openneutron.cli.inputs.loading import compile_source
    from openneutron.cli.shared.reporting import complete_report
    from openneutron.explore.compiled import draw_report
    from openneutron.explore.files import drawings_of
    from openneutron.files import kind_of, read_file

    path = Path(source)
    if path.is_file():
        data = read_file(source)
        kind = kind_of(data)
        if kind in ("pte", "microcode") or (kind == "tflite" and blocks_of_file(data, source)):
            stage("reading")
            return path.stem, drawings_of(data, path.name)
    program, loaded = compile_source(source, stage, dump_intermediates=True, target=target, **model)
    report = complete_report(program, loaded, {"target": target}, stage, what_if=False, accuracy=accuracy)
    return path.stem, [draw_report(report), *drawings_of(program.data, loaded.name, report)]


def _write(name: str, drawings: list[Drawing], folder: Path) -> list[Path]:
    """Write the graphs and one file per overlay; return their paths, the graphs first."""
    import json

    from openneutron.explore.drawing import collection, overlays_json
    from openneutron.files import write_file

    folder.mkdir(parents=True, exist_ok=True)
    contents = {f"{name}.json": collection(name, drawings)}
    for overlay, data in overlays_json(drawings).items():
        contents[f"{name}_{overlay.replace(' ', '_').lower()}.json"] = data
    for file, content in contents.items():
        write_file(folder / file, json.dumps(content, indent=1))
    return [folder / file for file in contents]


def _serve(files: list[Path], port: int, *, browser: bool) -> None:
    """Serve Model Explorer's page on the loopback interface until Ctrl-C."""
    from openneutron.extras import extra

    with extra("`openneutron explore`"):
        import model_explorer
    graphs, *overlays = files
    config = model_explorer.config().add_model_from_path(str(graphs))
    for overlay in overlays:
        config.add_node_data_from_path(str(overlay))
    model_explorer.visualize_from_config(config, host=_HOST, port=port, no_open_in_browser=not browser)
