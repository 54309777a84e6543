"""Samples of a project's self-test: inputs, the outputs expected of them, and both as C source.

Example:
    >>> samples = make_samples(payload, [], count=2, seed=0, where="model.tflite")
    >>> samples[0].outputs[0].dtype
    dtype('int8')
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.errors import InternalError, NoReference, OptionError
from openneutron.executorch.deliver.embed import Border, check_inputs, input_rows, random_inputs, word_array
from openneutron.machine.simulator import DTYPES, Simulator
from openneutron.microcode.encode import align
from openneutron.microcode.instructions import TensorRow
from openneutron.microcode.payload import Payload
from openneutron.run.runner import LiteRtRunner

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Sample:
    """One run: arrays in the order of the model's inputs and outputs."""

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]


def make_samples(
    payload: Payload, given: Sequence[Sequence[Array]], *, count: int, seed: int, where: str
) -> tuple[Sample, ...]:
    """Return the given inputs, or `count` random ones, with the outputs of consecutive runs on this machine.

    Float values are quantized where the model takes stored numbers. A model that keeps state runs them in this order.
    """
    rows = input_rows(payload, where=where)
    inputs = [check_inputs(payload, _quantize_samples(arrays, rows), where=where) for arrays in given]
    inputs = inputs or [random_inputs(payload, seed=seed + at, where=where) for at in range(count)]
    if not inputs:
        raise OptionError("there is no sample", hint="a self-test needs at least one")
    with Simulator(payload.microcode, payload.weights, payload.kernels, poison=True) as simulator:
        return tuple(
            Sample(tuple(arrays), tuple(array.copy() for array in simulator.run(list(arrays)))) for arrays in inputs
        )


def agrees_with_litert(model: bytes, where: str, border: Border, samples: Sequence[Sample]) -> bool:
    """Whether LiteRT computes the same outputs of the uncompiled model; False where it cannot be asked.

    It cannot where the model's own ends are others than the program's (real numbers), or where LiteRT refuses the model.
    """
    runner = LiteRtRunner(model, source=where)
    names = tuple(tensor.name for tensor in runner.inputs), tuple(tensor.name for tensor in runner.outputs)
    if names != (border.inputs, border.outputs):
        return False
    for number, sample in enumerate(samples):
        try:
            found = runner.run(list(sample.inputs)).outputs
        except NoReference:
            return False
        if [array.tobytes() for array in found.values()] != [array.tobytes() for array in sample.outputs]:
            raise InternalError(f"sample {number}: the simulator's outputs are not LiteRT's", where=where)
    return True


def sample_bytes(samples: Sequence[Sample]) -> int:
    """Return the bytes that the samples take as constants."""
    return sum(align(array.nbytes) for one in samples for array in (*one.inputs, *one.outputs))


def output_room(samples: Sequence[Sample]) -> int:
    """Return the bytes of the outputs of one run, each at a multiple of 16."""
    return sum(align(array.nbytes) for array in samples[0].outputs)


def input_room(samples: Sequence[Sample]) -> int:
    """Return the bytes of the inputs of one run, each at a multiple of 16."""
    return sum(align(array.nbytes) for array in samples[0].inputs)


def samples_header(samples: Sequence[Sample], title: str) -> str:
    """Return samples.h; `title` is what the self-test prints first."""
    lines = [
        "/* Inputs and the outputs expected of them; made by OpenNeutron. */",
        "#ifndef SAMPLES_H",
        "#define SAMPLES_H",
        "",
        "#include <stdint.h>",
        "",
        f"#define SAMPLE_TITLE {c_text(title)}",
        f"#define SAMPLES {len(samples)}u",
        f"#define SAMPLE_INPUTS {len(samples[0].inputs)}u",
        f"#define SAMPLE_OUTPUTS {len(samples[0].outputs)}u",
        "/* Bytes of the outputs of one run, each at a multiple of 16. */",
        f"#define SAMPLE_OUTPUT_ROOM {output_room(samples)}u",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        "extern const void *const sample_inputs[SAMPLES][SAMPLE_INPUTS];",
        "extern const void *const sample_outputs[SAMPLES][SAMPLE_OUTPUTS];",
        "extern const uint32_t sample_input_bytes[SAMPLE_INPUTS], sample_output_bytes[SAMPLE_OUTPUTS];",
        "",
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "#endif",
    ]
    return "".join(f"{line}\n" for line in lines)


def samples_source(samples: Sequence[Sample], *, section: bool) -> str:
    """Return samples.c; with `section` the arrays go where the model's payload goes."""
    return "".join(f"{line}\n" for line in _source(samples, section))


def _source(samples: Sequence[Sample], section: bool) -> Iterator[str]:
    yield '#include "samples.h"'
    rows: dict[str, list[str]] = {"input": [], "output": []}
    for number, sample in enumerate(samples):
        for kind, arrays in (("input", sample.inputs), ("output", sample.outputs)):
            named = [f"sample_{number}_{kind}_{at}" for at in range(len(arrays))]
            for name, array in zip(named, arrays, strict=True):
                yield ""
                yield from word_array(name, array.tobytes(), local=True, section=section)
            rows[kind].append(f"    {{{', '.join(named)}}},")
    for kind, listed in rows.items():
        yield ""
        yield f"const void *const sample_{kind}s[SAMPLES][SAMPLE_{kind.upper()}S] = {{"
        yield from listed
        yield "};"
    yield ""
    for kind, arrays in (("input", samples[0].inputs), ("output", samples[0].outputs)):
        sizes = ", ".join(str(array.nbytes) for array in arrays)
        yield f"const uint32_t sample_{kind}_bytes[SAMPLE_{kind.upper()}S] = {{{sizes}}};"


def _quantize_samples(arrays: Sequence[Array], rows: Sequence[TensorRow]) -> list[Array]:
    """The arrays, real numbers in steps of the input's scale where it takes stored ones."""
    if len(arrays) != len(rows):
        return list(arrays)  # check_inputs says so
    return [_quantize(array, row) for array, row in zip(arrays, rows, strict=True)]


def _quantize(array: Array, row: TensorRow) -> Array:
    wanted = np.dtype(DTYPES[row.dtype])
    if array.dtype.kind != "f" or wanted.kind == "f" or not row.scale:
        return array
    limits = np.iinfo(wanted)
    ratio = array.astype(np.float32) / np.float32(row.scale)
    # Halves go away from zero, as LiteRT's QUANTIZE has it.
    steps = np.copysign(np.floor(np.abs(ratio.astype(np.float64)) + 0.5), ratio) + row.zero_point
    stored: Array = np.clip(steps, limits.min, limits.max).astype(wanted)
    return stored


def c_text(text: str) -> str:
    """Return a title as a string of C; what could be read as anything but text becomes an underscore."""
    plain = "".join(one if 32 <= ord(one) < 127 and one not in '"\\%?' else "_" for one in text)
    return f'"{plain}"'
