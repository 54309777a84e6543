"""The typer application: every subcommand by name, in the order people meet them."""

from __future__ import annotations

from collections.abc import Callable
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
    fits,
    merge_kernels,
    ops,
    profile,
    run,
    sweep,
    targets,
    tune,
    verify,
    zoo,
)
from openneutron.cli import compare as side_by_side
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
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Show the warnings of torch and other libraries; works anywhere.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="On failure, show the traceback; works anywhere.")] = False,
) -> None:
    pass


# Name → function and what it is for, short enough for a list on 80 columns.
_COMMANDS: dict[str, tuple[Callable[..., None], str]] = {
    "compile": (compile_command.compile_model, "Compile a model; says where each node runs, and why."),
    "fits": (fits.fits_model, "Say on which chips a model fits, and what to change."),
    "run": (run.run_file, "Run a compiled file on this machine."),
    "report": (report_command.write_report, "Write one HTML file about a model."),
    "profile": (profile.profile_file, "Show what each kernel of a file costs."),
    "verify": (verify.verify_file, "Compare every layer with LiteRT's reference."),
    "evaluate": (evaluate.evaluate_model, "Measure accuracy: float, quantized, compiled."),
    "bisect": (bisect.bisect_model, "Find the layer whose quantization costs accuracy."),
    "tune": (tune.tune_model, "Reach an accuracy at the fewest cycles."),
    "sweep": (sweep.sweep_models, "Compile many variants; which is fastest, which fits."),
    "check": (check.check_budgets, "Keep models within budgets, for CI."),
    "inspect": (inspect_command.inspect_file, "Show what is inside a file, also NXP's."),
    "disasm": (disasm.disassemble_file, "Print microcode as text."),
    "compare": (side_by_side.compare_files, "Put two compiles or targets side by side."),
    "certify": (certify.certify_file, "Prove a schedule again, independently."),
    "extract-payload": (extract_payload.extract_payload, "Take a delegate's payload out, as bytes or C."),
    "merge-kernels": (merge_kernels.merge_kernels, "Merge the kernel selections of several models."),
    "targets": (targets.list_targets, "List the chips."),
    "ops": (ops.list_operators, "List the operators and their limits."),
    "zoo": (zoo.list_models, "List the models that come along."),
    "doctor": (doctor.diagnose, "Say what is installed and what is missing."),
}
for _name, (_function, _short) in _COMMANDS.items():
    app.command(_name, short_help=_short)(_function)
