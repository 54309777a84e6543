"""`python -m openneutron.compat.aot_neutron_compile`: the flags of ExecuTorch's NXP example script, for our compiler.

Scripts written for it work after changing the module's name. The result is `MODEL_nxp_delegate.pte` in the current folder,
or `MODEL.pte` without `-d`; other requested files are written beside it.

Example:
    python -m openneutron.compat.aot_neutron_compile -m cifar10 -d -q --target imxrt700
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openneutron import zoo
from openneutron.errors import InternalError, OpenNeutronError, OptionError
from openneutron.machine import targets
from openneutron.options import DEFAULT_TARGET
from openneutron.terminal.escapes import printable
from openneutron.terminal.quiet import quiet

if TYPE_CHECKING:
    from openneutron.program import Program

# Names in upstream's script that differ from those of the zoo.
ALIASES = {
    "cifar10": "cifarnet", "mobilenetv2": "mobilenet_v2", "mobilenet": "mobilenet_v2",
    "mlperf_tiny_image_classification": "resnet8", "mlperf_tiny_keyword_spotting": "ds_cnn",
    "mlperf_tiny_visual_wake_words": "vww_mobilenet_v1", "mlperf_tiny_anomaly_detection": "autoencoder",
}  # fmt: skip
USER_ERROR, INTERNAL = 2, 70  # as in the `openneutron` command

_NEEDS_DELEGATE = (
    "operators_not_to_delegate",
    "use_profiling",
    "dump_kernel_selection_code",
    "fetch_constants_to_sram",
)
_NEEDS_QUANTIZE = ("use_qat", "use_random_dataset", "dataset_path", "remove_quant_io_ops")


def parser() -> argparse.ArgumentParser:
    """Return the command-line parser."""
    made = argparse.ArgumentParser(
        prog="aot_neutron_compile", description="Compile a model of the zoo to an ExecuTorch program.",
        allow_abbrev=False,
    )  # fmt: skip
    names = ", ".join([*ALIASES, *zoo.names()])
    made.add_argument("-m", "--model_name", required=True, metavar="MODEL", help=f"the model: {names}")
    made.add_argument("-d", "--delegate", action="store_true", help="run on the NPU what it can run")
    made.add_argument("-q", "--quantize", action="store_true", help="quantize to INT8 after training")
    made.add_argument(
        "--use_qat", action="store_true",
        help="with -q: quantize by training, two epochs in which the INT8 model learns to answer as the float one",
    )  # fmt: skip
    made.add_argument("--target", default=DEFAULT_TARGET, help=f"the chip: {', '.join(targets.names())}")
    made.add_argument("-s", "--so_library", metavar="FILE", help="load this library of custom operators first")
    made.add_argument("--debug", action="store_true", help="log every stage and verdict; tracebacks on errors")
    made.add_argument("-t", "--test", action="store_true", help="print the program's accuracy, 0 to 1, on the test set")
    made.add_argument(
        "-r", "--remove-quant-io-ops", action="store_true", help="INT8 inputs and outputs: no quantize at the border"
    )
    made.add_argument(
        "--operators_not_to_delegate", nargs="*", default=[], metavar="NAME",
        help="what stays on the CPU: operators or nodes, exact or glob, e.g. aten::convolution",
    )  # fmt: skip
    made.add_argument(
        "--visualize", nargs="?", const="store", choices=("store", "show"),
        help="write the program's partitions as JSON for Model Explorer, and the report as HTML; show: and open that",
    )  # fmt: skip
    made.add_argument("--use_channels_last_dim_order", action="store_true", help="inputs in channels-last dim order")
    made.add_argument("--use_profiling", action="store_true", help="record each kernel call")
    made.add_argument("--dump_kernel_selection_code", action="store_true", help="write *_kernel_selection.c beside it")
    made.add_argument("--use_random_dataset", action="store_true", help="calibrate with random inputs")
    made.add_argument(
        "-dst",
        "--dataset_path",
        metavar="FILE",
        help="calibrate with the samples that torch.save wrote here (.pt, .xz)",
    )
    made.add_argument("--fetch_constants_to_sram", action="store_true", help="prefetch weights from flash")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status: 0, 2 for a user's error, 70 for a bug.

    Example:
        >>> main(["-m", "cifar10", "-d", "-q"])
        0
    """
    given = parser().parse_args(arguments)
    if given.debug:
        logging.basicConfig(level=logging.DEBUG, format="%(levelname)s %(name)s: %(message)s")
        _run(given)
        return 0
    try:
        with quiet():
            _run(given)
    except OpenNeutronError as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        return INTERNAL if isinstance(error, InternalError) else USER_ERROR
    return 0


def _run(given: argparse.Namespace) -> None:
    from openneutron.files import check_target

    _check(given)
    stem = f"{given.model_name}_nxp_delegate" if given.delegate else given.model_name
    output = check_target(f"{stem}.pte", ".pte")
    if given.so_library:
        from openneutron.executorch.capture.custom_library import load_library

        load_library(given.so_library)
    model = zoo.load(ALIASES.get(given.model_name, given.model_name))
    if given.test and model.test_set is None:
        raise OptionError(f"{given.model_name} has no labelled test images", where="--test", hint="leave --test out")
    program, encoding = _compile(given, model)
    files = _write(given, program, output)
    _show(dataclasses.replace(program.report, files=files))
    if given.test:
        from openneutron.executorch.run.labelled import accuracy

        images = model.test_images()
        print(f"Accuracy: {accuracy(program.run, images, encoding, given.use_channels_last_dim_order):.4f}")


def _check(given: argparse.Namespace) -> None:
    """Refuse options without effect before any work is done."""
    targets.load(given.target)
    if given.delegate and not given.quantize:
        raise OptionError("-d without -q delegates nothing: the NPU computes in INT8", hint="add -q")
    for option, needed, name in (
        *((name, given.delegate, "-d") for name in _NEEDS_DELEGATE),
        *((name, given.quantize, "-q") for name in _NEEDS_QUANTIZE),
    ):
        if getattr(given, option) and not needed:
            flag = "--remove-quant-io-ops" if option == "remove_quant_io_ops" else f"--{option}"
            raise OptionError(f"{flag} has no effect without {name}", hint=f"add {name}")
    if given.use_random_dataset and given.dataset_path:
        raise OptionError("--use_random_dataset and --dataset_path are two sources", hint="give one of them")


def _compile(given: argparse.Namespace, model: zoo.ZooModel) -> tuple[Program, tuple[float, int] | None]:
    """Return the program, and scale and zero point of its input if that is INT8."""
    import openneutron

    log = logging.getLogger("openneutron")
    name, channels_last = given.model_name, given.use_channels_last_dim_order
    if not given.quantize:
        from openneutron.executorch.float_program import compile_float

        float_program = compile_float(
            model.model, model.example_inputs, target=given.target, channels_last=channels_last, name=name,
            progress=log.debug,
        )  # fmt: skip
        return float_program, None
    options: dict[str, Any] = {
        "target": given.target,
        # Without -d the same quantized program, with every node on the CPU.
        "operators_not_to_delegate": given.operators_not_to_delegate if given.delegate else ("*",),
        "int8_io": given.remove_quant_io_ops,
        "use_profiling": given.use_profiling,
        "dump_kernel_selection_code": given.dump_kernel_selection_code,
        "fetch_constants_to_sram": given.fetch_constants_to_sram,
        "name": name,
        "progress": log.debug,
    }
    batches = _calibration(given, model)
    if given.use_qat:
        from openneutron.executorch.quantize.train.distill import distillation

        options["train"] = distillation(model.model, batches)
    else:
        options["calibration"] = batches
    program = openneutron.compile(model.model, model.example_inputs, channels_last=channels_last, **options)
    if not given.delegate:
        program = _without_delegate(program)
    for verdict in program.verdicts:
        log.debug("%s %s: %s", verdict.operator, verdict.name, verdict.reason or f"partition {verdict.partition}")
    if not given.remove_quant_io_ops:
        return program, None
    from openneutron.executorch.run.labelled import input_encoding

    return program, input_encoding(program.quantized)


def _without_delegate(program: Program) -> Program:
    """Give the reason why no node is delegated: the caller did not ask for it."""
    nodes = tuple(
        dataclasses.replace(node, reason="nothing is delegated without -d", hint="add -d")
        if node.code != "border"
        else node
        for node in program.report.nodes
    )
    return dataclasses.replace(program, report=dataclasses.replace(program.report, nodes=nodes))


def _calibration(given: argparse.Namespace, model: zoo.ZooModel) -> Any:
    if given.dataset_path:
        from openneutron.executorch.capture.samples import load_samples

        return load_samples(given.dataset_path, model.example_inputs)
    if given.use_random_dataset:
        from openneutron.executorch.capture.samples import random_samples

        return random_samples(model.example_inputs)
    return model.calibration


def _write(given: argparse.Namespace, program: Program, output: Path) -> dict[str, int]:
    """Write the program and the other requested files; returns file name → bytes."""
    from openneutron.files import write_file

    found: dict[Path, bytes | str] = {output: program.data}
    if given.dump_kernel_selection_code and program.kernel_selection:
        found[output.with_name(f"{output.stem}_kernel_selection.c")] = program.kernel_selection
    page = output.with_suffix(".html")
    if given.visualize:
        import json

        from openneutron.explore.drawing import collection
        from openneutron.explore.partitions import draw_partitions
        from openneutron.report.html.page import page as render

        found[page] = render(program.report)
        found[output.with_suffix(".json")] = json.dumps(collection("Executorch", [draw_partitions(program.report)]))
    for path, data in found.items():
        write_file(path, data)
    if given.visualize == "show":
        import webbrowser

        webbrowser.open(page.absolute().as_uri())
    return {path.name: len(data.encode() if isinstance(data, str) else data) for path, data in found.items()}


def _show(report: Any) -> None:
    from openneutron.report.render import print_report
    from openneutron.terminal import console

    with contextlib.suppress(console.ReaderGone):
        print_report(report, console.stdout())


if __name__ == "__main__":
    sys.exit(main())
