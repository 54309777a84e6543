"""The typer application: every subcommand by name, in the order people meet them."""

from __future__ import annotations

from typing import Annotated

import typer

from openneutron._version import __version__
from openneutron.cli import (
    bisect,
    certify,
    check,
    disasm,
    doctor,
    evaluate,
    extract_payload,
    merge_kernels,
    ops,
    profile,
    run,
    side_by_side,
    targets,
    verify,
    zoo,
)
from openneutron.cli import compile as compile_command
from openneutron.cli import inspect as inspect_command
from openneutron.cli import report as report_command
from openneutron.cli.main import EXIT_CODES

app = typer.Typer(
    name="openneutron",
    help="Compile PyTorch and LiteRT models for NXP's eIQ Neutron NPU, and run them bit-exactly on this machine.",
    epilog=EXIT_CODES.replace("\n", " "),
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: the rich one alone costs more CPU than all the rest of it
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"openneutron {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="On failure, show the traceback; works anywhere.")] = False,
) -> None:
    pass


app.command("compile")(compile_command.compile_model)
app.command("run")(run.run_file)
app.command("report")(report_command.write_report)
app.command("profile")(profile.profile_file)
app.command("verify")(verify.verify_file)
app.command("evaluate")(evaluate.evaluate_model)
app.command("bisect")(bisect.bisect_model)
app.command("check")(check.check_budgets)
app.command("inspect")(inspect_command.inspect_file)
app.command("disasm")(disasm.disassemble_file)
app.command("compare")(side_by_side.compare_files)
app.command("certify")(certify.certify_file)
app.command("extract-payload")(extract_payload.extract_payload)
app.command("merge-kernels")(merge_kernels.merge_kernels)
app.command("targets")(targets.list_targets)
app.command("ops")(ops.list_operators)
app.command("zoo")(zoo.list_models)
app.command("doctor")(doctor.diagnose)
