"""`openneutron compile`: a PyTorch model or a LiteRT file in, a `.pte` or a converted LiteRT file out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from openneutron.cli.shared.completion import efforts, model_names, target_names

_SOURCES = (
    "A model of the zoo (`openneutron zoo`), package.module:factory, a .pt2 exported program or a .tflite file. "
    "A factory gives (module, example_inputs) or (module, example_inputs, calibration)."
)


def compile_model(
    source: Annotated[str, typer.Argument(help=_SOURCES, autocompletion=model_names)],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="File to write: .pte for PyTorch models, .tflite for LiteRT ones."),
    ] = None,
    target: Annotated[
        str, typer.Option(help="The chip (`openneutron targets`).", autocompletion=target_names)
    ] = "imxrt700",
    converter: Annotated[str, typer.Option(help="open: ours. nxp: NXP's SDK, if installed.")] = "open",
    recipe: Annotated[
        str, typer.Option(help="Engines of a PyTorch program: neutron, cortex_m (no NPU) or imxrt700cm (both).")
    ] = "neutron",
    placement: Annotated[str, typer.Option(help="all: whatever the NPU can run. fastest: only what pays.")] = "all",
    optimize: Annotated[
        str, typer.Option(help="How hard to search: fast, default or max.", autocompletion=efforts)
    ] = "default",
    fit: Annotated[str, typer.Option(help="Budget for I/O + scratch + prefetch, e.g. 256K.")] = "",
    fetch_constants_to_sram: Annotated[
        bool, typer.Option("--fetch-constants-to-sram", help="Prefetch weights from flash.")
    ] = False,
    use_profiling: Annotated[bool, typer.Option("--use-profiling", help="Record each kernel call.")] = False,
    dump_kernel_selection: Annotated[
        bool, typer.Option("--dump-kernel-selection", help="Write *_kernel_selection.c beside the output.")
    ] = False,
    intermediates: Annotated[
        Path | None, typer.Option(help="Folder for LiteRT models, L1/L2 dumps and disassembly.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write the HTML report, as `openneutron report` does (.html).")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="Write the proof of the schedule here, for `openneutron certify`.")
    ] = None,
    not_delegate: Annotated[
        list[str] | None, typer.Option(help="Keep this operator on the CPU (name or glob; repeatable).")
    ] = None,
    pass_off: Annotated[list[str] | None, typer.Option(help="Leave out this compiler pass (repeatable).")] = None,
    per_channel: Annotated[
        bool, typer.Option("--per-channel", help="A weight scale for each output channel of PyTorch models.")
    ] = False,
    channels_last: Annotated[
        bool, typer.Option("--channels-last", help="Channels-last inputs for PyTorch models.")
    ] = False,
    int8_io: Annotated[
        bool,
        typer.Option(
            "--int8-io", help="INT8 inputs and outputs for PyTorch models: nothing is quantized at the border."
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON and nothing else; writes a file only with -o.")
    ] = False,
) -> None:
    """Compile a model and print where every node runs, the estimated cycles and the memory.

    Examples:

    openneutron compile cifarnet -o cifarnet.pte

    openneutron compile model.tflite -o out.tflite --target mcxn94x

    openneutron compile cifarnet --recipe imxrt700cm

    openneutron compile package.module:factory --int8-io --report report.html
    """
    from openneutron.cli.shared.compiling import Request, run_compile

    run_compile(
        Request(
            source=source,
            output=output,
            target=target,
            converter=converter,
            recipe=recipe,
            placement=placement,
            optimize=optimize,
            fit=fit,
            fetch_constants_to_sram=fetch_constants_to_sram,
            use_profiling=use_profiling,
            dump_kernel_selection=dump_kernel_selection,
            intermediates=intermediates,
            report=report,
            certificate=certificate,
            not_delegate=not_delegate,
            pass_off=pass_off,
            per_channel=per_channel,
            channels_last=channels_last,
            int8_io=int8_io,
            as_json=as_json,
        )
    )
