"""Verification of ExecuTorch programs: each delegate against its LiteRT model, which a debug bundle holds.

A bundle is the folder that `openneutron compile --intermediates` writes.

Example:
    >>> verify_pte(Path("model.pte"), Path("model.debug"), [[image]]).equal
    True
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.analyze.verify import Subject, Verification, Verify, border, open_verifier, stream_of
from openneutron.board.rounding import EXACT, SILICON, silicon_blocks
from openneutron.errors import FormatError, OptionError, UnsupportedError
from openneutron.files import read_file
from openneutron.litert.read import read_model
from openneutron.microcode.graph_op import blocks_of, is_graph_op
from openneutron.microcode.payload import CHANNELS_LAST, Payload, payloads_of_pte
from openneutron.microcode.pte import FORWARD, computing_methods
from openneutron.report.model import from_json
from openneutron.run.golden import Golden

Array = npt.NDArray[Any]


def verify_pte(
    pte: Path,
    bundle: Path,
    frames: Sequence[Sequence[Any]],
    *,
    rounding: str = EXACT,
    methods: Mapping[str, Sequence[Sequence[Any]]] | None = None,
) -> Verification:
    """Run the program's delegates on their inputs in each run of the program; compare every layer.

    `frames` are the inputs of `forward`, as torch tensors, and `methods` those of further methods by name: each method
    begins with its first state. With `rounding` "silicon" the delegates use the board's multipliers.
    """
    data = read_file(pte)
    payloads = _payloads(data, pte)
    if not any(payloads.values()):
        raise UnsupportedError("the program has no Neutron delegate", where=str(pte))
    given, found, number = {FORWARD: frames, **(methods or {})}, Verification(), 0
    for method, own in payloads.items():
        if method in given:
            subjects = [_subject(at, payload, bundle, pte) for at, payload in enumerate(own, number)]
            found = sum([_verify_method(data, pte, method, own, subjects, given[method], rounding)], found)
        number += len(own)
    return found


def _payloads(data: bytes, pte: Path) -> dict[str, list[Payload]]:
    """Return the delegates of each method, `forward` first, as their partitions are numbered."""
    names = computing_methods(data, where=str(pte))
    return {name: payloads_of_pte(data, where=str(pte), method=name) for name in names}


def _verify_method(
    data: bytes,
    pte: Path,
    method: str,
    payloads: Sequence[Payload],
    subjects: Sequence[tuple[Subject, bytes]],
    frames: Sequence[Sequence[Any]],
    rounding: str,
) -> Verification:
    from openneutron.executorch.run.tap import taps

    parts: list[list[Verification]] = []
    delegates = taps(data, where=str(pte), method=method)
    for (subject, model), payload, tap in zip(subjects, payloads, delegates, strict=True):
        golden = Golden(model, source=subject.where)
        if rounding == SILICON:
            microcode, weights = silicon_blocks(subject.microcode, subject.weights, subject.kernels_block)
            subject = dataclasses.replace(subject, microcode=microcode, weights=weights)
        with open_verifier(subject) as verify:
            parts.append([_frame(subject, payload, verify, golden, tap.run(*inputs)) for inputs in frames])
    return stream_of([sum(graphs, Verification()) for graphs in zip(*parts, strict=True)])


def _frame(
    subject: Subject, payload: Payload, verify: Verify, golden: Golden, arguments: Sequence[Any]
) -> Verification:
    """Verify one run of one delegate on its inputs."""
    given = [
        _arrange(arguments[place].numpy(), form, subject.source.tensors[tensor].shape)
        for place, form, tensor in zip(payload.input_map, payload.input_formats, subject.inputs, strict=True)
    ]
    by_tensor = dict(zip(subject.inputs, given, strict=True))
    return verify(given, golden.run([by_tensor[tensor] for tensor in subject.source.inputs]))


def require_bundle(pte: Path, data: bytes, bundle: Path) -> None:
    """Check that the program's delegates can be verified: an `OptionError` says how to make the bundle."""
    every = [one for own in _payloads(data, pte).values() for one in own]
    for number, payload in enumerate(every):
        _subject(number, payload, bundle, pte)


def _how(pte: Path, bundle: Path) -> str:
    return f"openneutron compile … -o {pte} --intermediates {bundle}"


def _subject(number: int, payload: Payload, bundle: Path, pte: Path) -> tuple[Subject, bytes]:
    """Return a delegate's subject and LiteRT model from the bundle; raises an error if the bundle is another program's."""
    stem = f"partition_{number}"
    where = f"{pte}, delegate {number}"
    how = _how(pte, bundle)
    if not (bundle / f"{stem}.tflite").is_file():
        raise OptionError(f"there is no debug bundle with {stem}.tflite", where=str(bundle), hint=f"make it: {how}")
    if payload.converter == "nxp":
        raise FormatError("it was made by NXP's converter", where=where, hint="only NXP's runtime runs it")
    model = read_file(bundle / f"{stem}.tflite")
    report_file = bundle / f"{stem}_report.json"
    report = from_json(read_file(report_file).decode(), where=str(report_file))
    converted = read_model(read_file(bundle / f"{stem}_converted.tflite"), source=f"{stem}_converted.tflite").main
    source = read_model(model, source=f"{stem}.tflite").main
    operators = [op for op in converted.operators if is_graph_op(op)]
    blocks = (
        blocks_of(converted, operators[0], outputs=len(operators[0].outputs), where=str(bundle)) if operators else None
    )
    if blocks is None or blocks.microcode != payload.microcode:
        raise OptionError("the debug bundle belongs to another compile", where=where, hint=f"make both again: {how}")
    inputs, outputs = border(source, report, 0)
    subject = Subject(
        number, where, payload.microcode, payload.weights, payload.kernels, source, inputs, outputs, report.kernels
    )
    return subject, model


def _arrange(value: Array, form: int, shape: tuple[int, ...]) -> Array:
    """Convert a delegate's argument to the NeutronGraph's layout: channels last if the payload says so."""
    if form == CHANNELS_LAST and value.ndim > 2:
        value = np.moveaxis(value, 1, -1)
    return np.ascontiguousarray(value).reshape(shape)
