"""`openneutron verify`: every layer of a real schedule against LiteRT's reference kernels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openneutron.cli.inputs.frames import FRONT_END_HELP, STREAM_HELP, Given, inputs_of, number_inputs
from openneutron.cli.inputs.loading import CALIBRATION_HELP, SIZE_HELP
from openneutron.options import DEFAULT_TARGET

if TYPE_CHECKING:
    from openneutron.analyze.layer import Layer
    from openneutron.analyze.verify import Verification

# Layers shown when some differ: the first ones tell where it began.
SHOWN = 20


def verify_file(
    file: Annotated[
        Path, typer.Argument(help="A .pte, a compiled .tflite, or a .tflite or .onnx to compile and verify.")
    ],
    input: Annotated[
        Path | None, typer.Option("--input", "-i", help="Inputs as .npy or .npz; random ones otherwise.")
    ] = None,
    stream: Annotated[Path | None, typer.Option(help=STREAM_HELP)] = None,
    front_end: Annotated[str, typer.Option(help=FRONT_END_HELP)] = "",
    seed: Annotated[int, typer.Option(help="Seed of the random inputs.")] = 0,
    bundle: Annotated[
        Path | None, typer.Option(help="Debug bundle of a .pte (default: NAME.debug beside the file).")
    ] = None,
    reference: Annotated[Path | None, typer.Option(help="The .tflite that a compiled .tflite came from.")] = None,
    target: Annotated[
        str, typer.Option(metavar="CHIP", help="The chip to compile a .tflite or .onnx for.")
    ] = DEFAULT_TARGET,
    optimize: Annotated[str, typer.Option(help="How hard to search then: fast, default or max.")] = "default",
    size: Annotated[list[str] | None, typer.Option(metavar="NAME=SIZE", help=SIZE_HELP)] = None,
    calibration: Annotated[str, typer.Option(help=CALIBRATION_HELP)] = "",
    dump: Annotated[
        list[str] | None, typer.Option(metavar="LAYER", help="Write this layer's value (repeatable; `all` for all).")
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Where --dump writes.")] = Path("layers.npz"),
    rounding: Annotated[
        str, typer.Option(help="exact: LiteRT's. silicon: the board's 16-bit multipliers, assumed where not public.")
    ] = "exact",
    timeout: Annotated[
        int | None,
        typer.Option(metavar="SECONDS", min=0, help="Seconds that a graph or LiteRT's part may take; 0: any number."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Run the real schedule, take every layer's value as the calls leave it, and compare it with the reference.

    Exit code 0: everything is at 0 LSB; 1: something differs, and the first and the worst layer are named.

    Examples:

    openneutron verify model.tflite --target mcxn94x

    openneutron compile cifarnet -o cifarnet.pte --intermediates cifarnet.debug && openneutron verify cifarnet.pte

    openneutron verify model.onnx --size batch=1 --calibration samples.npz

    openneutron verify out.tflite --reference model.tflite --input sample.npy --dump conv -o conv.npz

    openneutron verify wake.tflite --reference model.tflite --stream frames.npz
    """
    from openneutron.board.rounding import check_rounding
    from openneutron.cli.main import DIFFERS
    from openneutron.environment import timeout_of
    from openneutron.files import check_target
    from openneutron.terminal import console

    check_rounding(rounding)
    given = Given(input, stream, front_end, seed)
    if dump:
        check_target(output, ".npz", ".npy", inputs=(file, input, stream))
    steps: list[str] = []
    with console.progress("running") as stage, timeout_of(timeout):
        if _is_onnx(file):
            if bundle is not None or reference is not None or rounding != "exact":
                from openneutron.errors import OptionError

                raise OptionError("--bundle, --reference and --rounding are for compiled files", where=str(file))
            from openneutron.cli.shared.verify_onnx import verify_onnx

            model = {"sizes": size or (), "calibration": calibration}
            options = {"target": target, "optimize": optimize}
            found, steps = verify_onnx(file, given, model, options, stage)
        else:
            found = _verify(file, given, bundle, reference, target, optimize, rounding, calibration)
    if dump:
        _dump(found, dump, output, str(file))
    if as_json:
        import json

        console.put(json.dumps(as_data(found) | ({"onnxruntime": steps} if steps else {}), indent=2))
    else:
        _print(found, file)
        for line in steps:
            console.stdout().print(f"  {line}", markup=False)
    if not found.equal:
        raise typer.Exit(DIFFERS)


def _is_onnx(file: Path) -> bool:
    from openneutron.files import kind_of, read_file

    return file.suffix == ".onnx" or kind_of(read_file(file)) == "onnx"


def _verify(
    file: Path,
    given: Given,
    bundle: Path | None,
    reference: Path | None,
    target: str,
    optimize: str,
    rounding: str,
    calibration: str,
) -> Verification:
    from openneutron.analyze.litert_layers import is_compiled, verify_compiled, verify_litert
    from openneutron.board.rounding import SILICON, silicon_file
    from openneutron.convert import convert
    from openneutron.errors import FormatError, OptionError
    from openneutron.files import kind_of, read_file
    from openneutron.machine import targets
    from openneutron.options import Options

    data = read_file(file)
    where = str(file)
    kind = kind_of(data)
    if kind == "pte":
        return _verify_pte(file, data, given, bundle, rounding)
    if kind != "tflite":
        raise FormatError(
            "only .pte, .tflite and .onnx files can be verified",
            where=where,
            hint="`openneutron inspect` says what it is",
        )
    if not is_compiled(data, source=where):
        if reference is not None:
            raise OptionError("--reference is for compiled models, this one is none", where=where)
        if calibration:
            from openneutron.cli.inputs.loading import found_source

            data = found_source(where, calibration=calibration).litert_model().model
        options = Options(target=targets.canonical_name(target), optimize=optimize, source=where)
        frames = given.frames(inputs_of(data, where), where=where)
        if rounding == SILICON:
            return verify_compiled(silicon_file(convert(data, options).model, where=where), data, frames, source=where)
        return verify_litert(data, frames, options)
    if reference is None:
        hint = "give the .tflite it was compiled from with --reference"
        raise OptionError("this model is compiled, so it needs a reference", where=where, hint=hint)
    original = read_file(reference)
    if kind_of(original) != "tflite" or is_compiled(original, source=str(reference)):
        raise OptionError("the reference is no .tflite that is not compiled", where=str(reference))
    if rounding == SILICON:
        data = silicon_file(data, where=where)
    frames = given.frames(inputs_of(original, str(reference)), where=where)
    return verify_compiled(data, original, frames, source=where)


def _verify_pte(file: Path, data: bytes, given: Given, bundle: Path | None, rounding: str) -> Verification:
    from openneutron.analyze.program_layers import require_bundle, verify_pte
    from openneutron.files import bundle_of

    bundle = bundle or bundle_of(file)
    require_bundle(file, data, bundle)  # before torch is loaded and a model is run
    from openneutron.executorch.run.arrays import tensors_of
    from openneutron.microcode.pte import FORWARD, computing_methods, read_plan

    frames = given.frames(inputs_of(data, str(file)), where=str(file))
    methods = {}
    for name in computing_methods(data, where=str(file)):
        if name == FORWARD:
            continue
        inputs = number_inputs(read_plan(data, where=str(file), with_payloads=False, method=name).inputs)
        methods[name] = [tensors_of(one) for one in Given(seed=given.seed).frames(inputs, where=str(file))]
    return verify_pte(file, bundle, [tensors_of(frame) for frame in frames], rounding=rounding, methods=methods)


def _dump(found: Verification, names: list[str], output: Path, where: str) -> None:
    from openneutron.analyze.data.arrays import write_arrays
    from openneutron.errors import OptionError

    wanted = list(found.values) if names == ["all"] else names
    for name in wanted:
        if name not in found.values:
            import difflib

            near = difflib.get_close_matches(name, found.values, n=3, cutoff=0.3) or list(found.values)[:3]
            raise OptionError(f"it has no layer {name!r}", where=where, hint=f"for example {', '.join(near)}, or `all`")
    write_arrays(output, {name: found.values[name] for name in wanted})


def as_data(found: Verification) -> dict[str, Any]:
    """The comparison as plain data; an SQNR of infinity is null."""
    import dataclasses
    import math

    def plain(layer: Layer | None) -> dict[str, Any] | None:
        if layer is None:
            return None
        return dataclasses.asdict(layer) | {"sqnr": layer.sqnr if math.isfinite(layer.sqnr) else None}

    return {
        "equal": found.equal,
        "cycles": found.cycles,
        "frames": found.frames,
        "first_frame": None if found.equal else found.first_frame,
        "first": plain(found.first),
        "worst": plain(found.worst),
        "exceptions": {why: list(names) for why, names in found.exceptions.items()},
        "layers": [plain(layer) for layer in found.layers],
        "outputs": [plain(layer) for layer in found.outputs],
    }


def _print(found: Verification, file: Path) -> None:
    from rich.table import Table
    from rich.text import Text

    from openneutron.terminal import console

    screen = console.stdout()
    compared = [layer for layer in found.layers if layer.compared]
    values = sum(layer.elements for layer in compared)
    unseen = len(found.layers) - len(compared)
    beside = f" ({unseen} more exist only inside the compiler)" if unseen else ""
    first, worst = found.first, found.worst
    if first is None or worst is None:
        frames = f" of {found.frames} frames in a row" if found.frames > 1 else ""
        each = " a frame" if found.frames > 1 else ""
        text = (
            f"{file}: 0 LSB in all {len(compared)} layers{frames}, {values:,} values{beside}; "
            f"{found.cycles:,} cycles{each}, open schedule"
        )
        screen.print(text, markup=False, style="green")
        _print_exceptions(found)
        return
    different = [layer for layer in (*found.layers, *found.outputs) if not layer.equal]
    table = Table(header_style="cyan", box=None)
    for heading in ("graph", "node", "kernel", "layer"):
        table.add_column(heading)
    for heading in ("values", "differ", "by at most", "SQNR"):
        table.add_column(heading, justify="right")
    table.add_column("differences in LSB", overflow="fold")
    for layer in different[:SHOWN]:
        place = tuple(str(number) if number >= 0 else "-" for number in (layer.graph, layer.node))
        figures = (f"{layer.elements:,}", f"{layer.differing:,}", f"{layer.largest:g}", f"{layer.sqnr:.1f} dB")
        table.add_row(*place, layer.kernel, Text(layer.name), *figures, _histogram(layer))
    screen.print(table)
    if len(different) > SHOWN:
        screen.print(f"  and {len(different) - SHOWN} more", style="dim")
    frame = f" in frame {found.first_frame} of {found.frames}" if found.frames > 1 else ""
    text = (
        f"{file}: {len(different)} differ; first {first.name} ({first.kernel}){frame}, "
        f"worst {worst.name} ({worst.sqnr:.1f} dB)"
    )
    screen.print(text, markup=False, style="red")
    _print_exceptions(found)


def _print_exceptions(found: Verification) -> None:
    """Which layers are compared with something else than LiteRT's reference kernels."""
    from openneutron.terminal import console

    for why, names in found.exceptions.items():
        console.stdout().print(f"  {', '.join(names)}: compared with {why}", markup=False, style="dim")


def _histogram(layer: Layer) -> str:
    """Counts by difference, the common ones first; the outermost mean "or more"."""
    from openneutron.analyze.layer import FAR

    shown = sorted(((step, count) for step, count in layer.histogram.items() if step), key=lambda pair: -pair[1])
    return ", ".join(f"{step:+d}{'…' if abs(step) == FAR else ''}: {count:,}" for step, count in shown[:6])
