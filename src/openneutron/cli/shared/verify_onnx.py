"""An ONNX model compiled and verified: every layer against LiteRT's reference, the outputs against onnxruntime."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from openneutron.analyze.verify import Verification
    from openneutron.cli.inputs.frames import Given


def verify_onnx(
    file: Path,
    given: Given,
    model: Mapping[str, Any],
    options: Mapping[str, Any],
    stage: Callable[[str], None],
) -> tuple[Verification, list[str]]:
    """The comparison of all layers, and a line for each output about how far it is from onnxruntime's.

    `model` is the command line's sizes and calibration, `options` are those of `openneutron.compile`.
    """
    from openneutron.analyze.program_layers import verify_pte
    from openneutron.cli.inputs.frames import number_inputs
    from openneutron.cli.inputs.loading import compile_source
    from openneutron.executorch.run.arrays import run_arrays, tensors_of
    from openneutron.files import bundle_of, make_folder, write_file
    from openneutron.microcode.pte import read_plan
    from openneutron.onnx.sizes import fixed_inputs, parse_sizes

    program, loaded = compile_source(str(file), stage, dump_intermediates=True, **model, **options)
    plan = read_plan(program.data, where=str(file))
    frames = given.frames(number_inputs(plan.inputs), where=str(file))
    stage("verifying every layer")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{file.stem}.pte"
        write_file(path, program.data)
        debug = make_folder(bundle_of(path))
        for name, content in program.intermediates.items():
            write_file(debug / name, content)
        found = verify_pte(path, debug, [tensors_of(frame) for frame in frames])
    stage("running onnxruntime")
    fixed = fixed_inputs(str(file), parse_sizes(model["sizes"]))
    inputs = frames[0]
    if given.input is None and given.stream is None and loaded.calibration:
        # Random data exercises the layers, but says nothing of accuracy outside the ranges that were calibrated.
        inputs = [value.numpy() for value in loaded.calibration[0]]
    return found, _against_onnxruntime(file, inputs, run_arrays(program.run, inputs), loaded.model, fixed)


def _against_onnxruntime(
    file: Path, inputs: Sequence[Any], outputs: Sequence[Any], model: Any, fixed: Mapping[str, int]
) -> list[str]:
    import numpy as np

    from openneutron.onnx.reference import output_scales, run_reference
    from openneutron.report.accuracy import FULL
    from openneutron.report.facts import figure_of
    from openneutron.run.compare_arrays import compare_arrays

    lines = []
    scales = output_scales(model)
    for at, (name, wanted) in enumerate(run_reference(str(file), inputs, fixed).items()):
        got = np.asarray(outputs[at], np.float64)
        found = compare_arrays(f"{name} against onnxruntime:", wanted[None], got.reshape(wanted.shape)[None])
        if found.wrong or found.sqnr is None:
            wrong = (
                f"{found.wrong} values are {found.note}" if found.wrong else figure_of(found).removeprefix(found.name)
            )
            lines.append(f"{found.name} {wrong.strip()}")
            continue
        apart = np.abs(got - wanted)
        sqnr = "exact" if found.sqnr == FULL else f"{found.sqnr:.1f} dB"
        steps = f", at most {apart.max() / scales[at]:.0f} steps" if at < len(scales) and scales[at] else ""
        lines.append(f"{found.name} SQNR {sqnr}, at most {apart.max():.4g} apart{steps}")
    return lines
