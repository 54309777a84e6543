"""`openneutron compile`: a PyTorch, ONNX or LiteRT model in, a `.pte` or a converted LiteRT file out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from openneutron.cli.inputs.loading import CALIBRATION_HELP, SANDBOX_HELP, SANDBOX_LIMITS_HELP, SIZE_HELP
from openneutron.cli.shared.completion import efforts, model_names, target_names
from openneutron.options import PUBLIC, SCHEMA, Option, check_options, read_text

_SOURCES = (
    "A model of the zoo (`openneutron zoo`), package.module:factory, a .pt2 exported program, an .onnx or .tflite file. "
    "A factory gives (module, example_inputs) or (module, example_inputs, calibration)."
)
_COMPLETIONS: dict[str, Callable[..., Any]] = {"target": target_names, "optimize": efforts}
FLAGGED = tuple(one for one in PUBLIC if one.flag)


def compile_model(
    source: Annotated[str, typer.Argument(help=_SOURCES, autocompletion=model_names)],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="File to write: .pte, or .bpte with its inputs and outputs, or .tflite for a LiteRT or ONNX model.",
        ),
    ] = None,
    intermediates: Annotated[
        Path | None, typer.Option(help="Folder for LiteRT models, L1/L2 dumps and disassembly.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write the HTML report, as `openneutron report` does (.html).")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="Write the proof of the schedule here, for `openneutron certify`.")
    ] = None,
    must_fit: Annotated[
        bool,
        typer.Option("--must-fit", help="Exit with 1 when the whole program does not fit the chip's RAM or flash."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON and nothing else; writes a file only with -o.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace output files that are no results of a compile; never an input.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Print every reason for which something stays on the CPU.")
    ] = False,
    size: Annotated[list[str] | None, typer.Option(metavar="NAME=SIZE", help=SIZE_HELP)] = None,
    calibration: Annotated[str, typer.Option(help=CALIBRATION_HELP)] = "",
    sandbox: Annotated[bool, typer.Option("--sandbox", help=SANDBOX_HELP)] = False,
    sandbox_limits: Annotated[str, typer.Option(help=SANDBOX_LIMITS_HELP)] = "",
    **options: Any,
) -> None:
    """Compile a model and print where every node runs, the estimated cycles and the memory.

    Examples:

    openneutron compile cifarnet -o cifarnet.pte

    openneutron compile model.tflite -o out.tflite --target mcxn94x

    openneutron compile model.onnx --size batch=1 --calibration samples.npz

    openneutron compile cifarnet --recipe imxrt700cm

    openneutron compile package.module:factory --int8-io --report report.html
    """
    from openneutron.cli.main import DIFFERS
    from openneutron.cli.shared.compiling import Request, run_compile

    given = given_options(FLAGGED, options)
    kept = run_compile(
        Request(
            source,
            output,
            intermediates,
            report,
            certificate,
            as_json,
            force,
            everything,
            must_fit,
            given,
            tuple(size or ()),
            calibration,
            sandbox,
            sandbox_limits,
        )
    )
    if not kept:
        raise typer.Exit(DIFFERS)


def given_options(known: Iterable[Option], options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that the command line gives, parsed and checked."""
    given = {one.name: options[one.name] for one in known if _is_given(one, options[one.name])}
    return check_options({name: _value(SCHEMA[name], value) for name, value in given.items()})


def _is_given(option: Option, value: Any) -> bool:
    """Whether the command line has an option: without it typer passes None, False or an empty list."""
    if value is False:
        return bool(option.off)
    return value is not None and value not in ((), [])


def _value(option: Option, given: Any) -> Any:
    return read_text(option, given) if option.kind in ("bytes", "count", "number", "level") else given


def _value_name(option: Option) -> str | None:
    """Return the name of an option's value in the help text."""
    kinds: dict[str, str] = {"names": "NAME", "bytes": "BYTES", "number": "TIMES"}
    return {"target": "CHIP", "precision": "PATTERN=int16", "quality": "auto|plain|DB"}.get(
        option.name, kinds.get(option.kind)
    )


def parameter(option: Option) -> inspect.Parameter:
    """Return an option of the schema as a typer parameter."""
    types: dict[str, Any] = {"switch": bool | None if option.off else bool, "names": list[str] | None}
    shown = typer.Option(
        option.flags, metavar=_value_name(option), help=option.help, autocompletion=_COMPLETIONS.get(option.name),
        show_default=option.default if option.kind == "text" and option.default else True,
    )  # fmt: skip
    # None tells that the command line leaves it out, so that a quantization file or another front end may decide.
    default = option.default if option.kind == "switch" and not option.off else None
    annotation: Any = Annotated[types.get(option.kind, str | None), shown]
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _with_options(function: Callable[..., None]) -> None:
    """Replace `**options` in the signature that typer sees by one parameter per option of the schema."""
    shown = inspect.signature(function, eval_str=True)
    fixed = [one for one in shown.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    vars(function)["__signature__"] = shown.replace(parameters=[*fixed, *map(parameter, FLAGGED)])


_with_options(compile_model)
