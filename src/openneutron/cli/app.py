"""The typer application: every subcommand by name, in the order people meet them."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer

from openneutron._version import __version__
from openneutron.cli.main import EXIT_CODES


def _version(wanted: bool) -> None:
    if wanted:
        print(f"openneutron {__version__}")
        raise typer.Exit


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


# Name → function of the module beside this one, and what it is for, short enough for a list on 80 columns.
COMMANDS = {
    "compile": ("compile.compile_model", "Compile a model; says where each node runs, and why."),
    "fits": ("fits.fits_model", "Say on which chips a model fits, and what to change."),
    "run": ("run.run_file", "Run a compiled file on this machine."),
    "chat": ("chat.chat_with_model", "Write text with a compiled language model."),
    "report": ("report.write_report", "Write one HTML file about a model."),
    "studio": ("studio.open_studio", "Open a page in the browser that does all of this."),
    "explore": ("explore.explore_model", "Open a graph in Google's Model Explorer."),
    "profile": ("profile.profile_file", "Show what each kernel of a file costs."),
    "verify": ("verify.verify_file", "Compare every layer with LiteRT's reference."),
    "evaluate": ("evaluate.evaluate_model", "Measure accuracy: float, quantized, compiled."),
    "bisect": ("bisect.bisect_model", "Find the layer whose quantization costs accuracy."),
    "tune": ("tune.tune_model", "Reach an accuracy at the fewest cycles."),
    "sweep": ("sweep.sweep_models", "Compile many variants; which is fastest, which fits."),
    "check": ("check.check_budgets", "Keep models within budgets, for CI."),
    "inspect": ("inspect.inspect_file", "Show what is inside a file, also NXP's."),
    "disasm": ("disasm.disassemble_file", "Print microcode as text."),
    "compare": ("compare.compare_files", "Put two compiles or targets side by side."),
    "certify": ("certify.certify_file", "Prove a schedule again, independently."),
    "extract-payload": ("extract_payload.extract_payload", "Take a delegate's payload out, as bytes or C."),
    "merge-kernels": ("merge_kernels.merge_kernels", "Merge the kernel selections of several models."),
    "project": ("project.make_project", "Write a project for a board, ready to build."),
    "targets": ("targets.list_targets", "List the chips."),
    "ops": ("ops.list_operators", "List the operators and their limits."),
    "zoo": ("zoo.list_models", "List the models that come along."),
    "doctor": ("doctor.diagnose", "Say what is installed and what is missing."),
}

# Name → what it is for, and commands as above.
GROUPS = {
    "board": (
        "Ask a board: run, time and compare a model there.",
        {
            "info": ("board.info.board_info", "Say what runs on a board."),
            "run": ("board.run.board_run", "Run a model on a board."),
            "profile": ("board.profile.board_profile", "Measure a model on a board; keep the times."),
            "check": ("board.check.board_check", "Compare a board's bytes with the expected ones."),
            "learn": ("board.learn.board_learn", "Refit the latency model with your own measurements."),
        },
    ),
}


@cache
def build(only: str | None = None, *, alone: bool = False) -> typer.Typer:
    """Build the application; with `only`, only this command is imported, the others are names in the help.

    Importing every command takes longer than most of them run. With `alone` the others are left out: nobody sees their names.
    """
    made = typer.Typer(
        name="openneutron",
        help="Compile PyTorch and LiteRT models for NXP's eIQ Neutron NPU, and run them bit-exactly on this machine.",
        epilog=EXIT_CODES.replace("\n", " "),
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # plain help: the rich one alone costs more CPU than all the rest of it
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    )
    made.callback()(_options)
    alone = alone and (only in COMMANDS or only in GROUPS)
    for name, (place, short) in COMMANDS.items():
        if alone and name != only:
            continue
        made.command(name, short_help=short)(_function(place) if only in (None, name) else _elsewhere)
    for name, (purpose, commands) in GROUPS.items():
        if alone and name != only:
            continue
        group = typer.Typer(help=purpose, rich_markup_mode=None)
        for action, (place, short) in commands.items():
            group.command(action, short_help=short)(_function(place) if only in (None, name) else _elsewhere)
        made.add_typer(group, name=name)
    return made


def all_commands() -> dict[str, Any]:
    """Return the function of every command by what a user types after `openneutron`."""
    found = {name: _function(place) for name, (place, _) in COMMANDS.items()}
    for name, (_, commands) in GROUPS.items():
        found |= {f"{name} {action}": _function(place) for action, (place, _) in commands.items()}
    return found


def _function(place: str) -> Any:
    module, _, name = place.rpartition(".")
    return getattr(import_module(f"openneutron.cli.{module}"), name)


def _elsewhere() -> None:
    raise AssertionError("a command that was not asked for")


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return build()
