"""Difference of each layer of a report from LiteRT's reference kernels, measured by running the schedule.

Example:
    >>> measured = with_exactness(report, [Path("model.tflite").read_bytes()], Options(target="imxrt700"))
    >>> {kernel.lsb for kernel in measured.kernels}
    {0.0}
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from openneutron.analyze.litert_layers import verify_litert
from openneutron.analyze.verify import Verification
from openneutron.errors import NoReference, UnsupportedError
from openneutron.litert.read import read_model
from openneutron.options import Options
from openneutron.report.model import Report
from openneutron.run.given import random_inputs


def verify_models(
    models: Sequence[bytes], options: Options, *, seed: int = 0, progress: Callable[[str], None] | None = None
) -> list[Verification]:
    """Compile each LiteRT model, run it on seeded random inputs, and compare it layer by layer."""
    found = []
    for at, model in enumerate(models):
        if progress is not None:
            progress("verifying every layer" + (f", graph {at} of {len(models)}" if len(models) > 1 else ""))
        graph = read_model(model, source=options.source).main
        inputs = random_inputs([graph.tensors[index] for index in graph.inputs], seed=seed)
        found.append(verify_litert(model, [inputs], options))
    return found


def with_exactness(
    report: Report, models: Sequence[bytes], options: Options, progress: Callable[[str], None] | None = None
) -> Report:
    """Return the report with the `lsb` of each kernel; `models` are the file itself, or one per delegate in order.

    A model that needs the user's runtime (custom operators, strings) has no reference: a note says so.
    """
    try:
        verified = verify_models(models, options, progress=progress)
    except (NoReference, UnsupportedError) as error:
        note = f"no layer was compared with LiteRT's reference kernels: {error.message}"
        return dataclasses.replace(report, notes=(*report.notes, note))
    largest: dict[tuple[int, int], float] = {}
    exceptions: dict[tuple[int, int], str] = {}
    for at, found in enumerate(verified):
        for layer in found.layers:
            if layer.compared:
                # A delegate is one graph; a LiteRT file may have several.
                place = (at if report.nodes else layer.graph), layer.node
                largest[place], exceptions[place] = layer.largest, layer.exception
    kernels = tuple(
        dataclasses.replace(k, lsb=largest.get((k.graph, k.node)), golden=exceptions.get((k.graph, k.node), ""))
        for k in report.kernels
    )
    return dataclasses.replace(report, kernels=kernels)
