"""`openneutron studio`: a page in the browser that compiles, judges and runs models."""

from __future__ import annotations

from typing import Annotated

import typer

from openneutron.cli.inputs.loading import SANDBOX_LIMITS_HELP
from openneutron.cli.shared.completion import model_names


def open_studio(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL]...",
            help="Files (.tflite, .onnx, .pt2, .pte) or zoo models to begin with; more are dropped on the page.",
            autocompletion=model_names,
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="Port to listen on; 0: any free one.")
    ] = 0,
    browser: Annotated[bool, typer.Option(help="Open the browser; otherwise only print the address.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the address as JSON.")] = False,
    limits: Annotated[str, typer.Option("--limits", help=SANDBOX_LIMITS_HELP.partition(";")[0] + ".")] = "",
) -> None:
    """Open a page: which chips a model fits, its report, what to change, runs with images or sound, and its files.

    It is served on this machine's loopback interface, under an address with a secret token, until Ctrl-C. Models are
    compiled in processes without network that can read nothing else of yours; nothing leaves the machine.

    Examples:

    openneutron studio

    openneutron studio model.tflite --no-browser
    """
    import json
    import sys
    import webbrowser
    from pathlib import Path

    from openneutron import zoo
    from openneutron.sandbox.supervisor import limits_of
    from openneutron.studio.server import Studio
    from openneutron.terminal import console

    with Studio(port, limits_of(limits)) as studio:
        for text in models or ():
            path = Path(text)
            if text in zoo.names() and not path.exists():
                studio.session.add_zoo(text)
            else:
                studio.session.add_path(path)
        console.put(json.dumps({"address": studio.address}) if as_json else studio.address)
        sys.stdout.flush()
        if browser and not webbrowser.open(studio.address):
            print("openneutron: no browser was found; open the address above", file=sys.stderr)
        print("openneutron: Ctrl-C ends it", file=sys.stderr)
        try:
            studio.serve()
        except KeyboardInterrupt:
            print(file=sys.stderr)
