"""Plants faults in files around the microcode; none may be proved that computes otherwise or has other shapes or names."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from openneutron.certify.program import FRAME, prove_program
from openneutron.certify.prove import Hints, Proof, prove
from openneutron.certify.read.pte import delegates
from openneutron.certify.refused import Refused
from openneutron.convert import convert
from openneutron.litert import DType, GraphBuilder
from openneutron.litert.flexbuffer import encode_map, read_map
from openneutron.litert.graph import Metadata, Signature
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.options import Options
from tests import tiny
from tests.certify.forge import reseal_blocks
from tests.compiler.networks import random_network
from tests.loops import Loop
from tests.mutants.judge import TARGETS, agree
from tests.stateful import Svdf
from tests.streaming import streaming_convnet

OUTCOMES = (
    "refused",
    "equal",
    "no source",
    "proved otherwise",
)  # "no source": LiteRT refuses the changed source, so it computes nothing
Rng = np.random.Generator
Change = Callable[[Any, Rng], str]  # returns a description of the change, "" if it is impossible


@dataclass(frozen=True)
class ChangedFile:
    """A changed file and the outcome of its check."""

    seed: int
    model: str
    stage: str
    what: str
    outcome: str


@cache
def sources() -> dict[str, bytes]:
    """Return small models with signatures and metadata: all on the NPU, some on the CPU, variables, called graphs."""
    made = {"convnet": tiny.convnet(), "sandwich": tiny.sandwich(), "streaming": streaming_convnet()}
    made |= {f"network {seed}": random_network(seed)[0] for seed in range(4)}
    made["svdf"] = Svdf(batch=2).model()
    made["moves on the CPU"] = moves()
    made["loop on the CPU"] = Loop(at_run_time=True).data()
    return {name: add_descriptions(data) for name, data in made.items()}


def moves() -> bytes:
    """Return a layer for the NPU, then operators without a kernel and with constant shapes, which stay unchanged."""
    g = GraphBuilder()
    rng = np.random.default_rng(5)
    x = g.tensor("x", (1, 24), DType.INT8, scale=0.05, zero_point=3)
    weights = rng.integers(-127, 128, (24, 24)).astype(np.int8)
    w = g.tensor("w", (24, 24), DType.INT8, scale=0.02, zero_point=0, data=weights)

    def numbers(name: str, *values: int) -> int:
        return g.tensor(name, (len(values),), DType.INT32, data=np.array(values, np.int32))

    def made(name: str, *shape: int) -> int:
        return g.tensor(name, shape, DType.INT8, scale=0.1, zero_point=-4)

    layer, turned, tall = made("layer", 1, 24), made("turned", 1, 24), made("tall", 1, 4, 6)
    again, wide, out = made("again", 1, 4, 6), made("wide", 2, 4, 6), made("out", 2, 24)
    g.op("FULLY_CONNECTED", [x, w, -1], [layer])
    g.op("REVERSE_V2", [layer, numbers("axis 1", 1)], [turned])
    g.op("RESHAPE", [turned, numbers("four by six", 1, 4, 6)], [tall], new_shape=[1, 4, 6])
    g.op("REVERSE_V2", [tall, numbers("axis 2", 2)], [again])
    g.op("BROADCAST_TO", [again, numbers("twice", 2, 4, 6)], [wide])
    g.op("RESHAPE", [wide, numbers("flat", 2, 24)], [out], new_shape=[2, 24])
    return write_model(g.finish([x], [out]))


def add_descriptions(data: bytes) -> bytes:
    """Add a signature, metadata and a description to a model."""
    model = read_model(data)
    graph = model.main
    sides = [tuple((f"{kind} {at}", index) for at, index in enumerate(border))
             for kind, border in (("in", graph.inputs), ("out", graph.outputs))]  # fmt: skip
    model.signatures = [Signature("serving_default", 0, sides[0], sides[1])]
    model.metadata = [Metadata("min_runtime_version", b"2.5.0"), Metadata("labels", b"cat dog")]
    model.description = "a model"
    return write_model(model)


@cache
def compile_source(name: str, target: str) -> bytes:
    """Return one of the sources, compiled."""
    return convert(sources()[name], Options(target=target)).model


def load(data: bytes) -> Any:
    """Read a file as objects of LiteRT's own schema."""
    return schema.ModelT.InitFromPackedBuf(data, 0)


def pack(model: Any) -> bytes:
    """Write a file with LiteRT's own code, whose layout differs from ours."""
    builder = flatbuffers.Builder(1 << 12)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _pick(rng: Rng, items: Sequence[Any]) -> Any:
    return items[int(rng.integers(len(items)))] if len(items) else None


def _buffers(model: Any, rng: Rng) -> str:
    full = [one for one in model.buffers if one.data is not None and len(one.data)]
    kind, one = int(rng.integers(5)), _pick(rng, full)
    if kind == 0:
        one.data = np.array(one.data)
        one.data[int(rng.integers(len(one.data)))] ^= 1 << int(rng.integers(8))
        return "a bit of a buffer"
    if kind == 1:
        model.buffers.append(schema.BufferT())
        model.buffers[-1].data = np.frombuffer(b"spare", np.uint8)
        return "a buffer more"
    if kind == 2:
        tensor = _pick(rng, _pick(rng, model.subgraphs).tensors)
        tensor.buffer = int(rng.integers(len(model.buffers)))
        return "another buffer of a tensor"
    if kind == 3:
        other = _pick(rng, full)
        one.data, other.data = other.data, one.data
        return "two buffers swapped"
    model.buffers[0].data = np.frombuffer(bytes(int(rng.integers(1, 64))), np.uint8)
    return "data in buffer 0"


def _shapes(model: Any, rng: Rng) -> str:
    tensor = _pick(rng, _pick(rng, model.subgraphs).tensors)
    kind, shape = int(rng.integers(4)), [] if tensor.shape is None else list(map(int, tensor.shape))
    if kind == 0 and len(shape) > 1:
        tensor.shape = rng.permutation(np.array(shape, np.int32))
        return "a shape permuted"
    if kind == 1:
        tensor.shape = np.array([1, *shape], np.int32)
        return "a dimension more"
    if kind == 2 and shape:
        at = int(rng.integers(len(shape)))
        shape[at] += 1
        tensor.shape = np.array(shape, np.int32)
        return "a size more by one"
    tensor.shapeSignature = np.array([-1, *shape[1:]], np.int32) if shape else np.array([-1], np.int32)
    return "an open size"


def _constants(model: Any, rng: Rng) -> str:
    numbers = (schema.TensorType.INT32, schema.TensorType.FLOAT32)
    every = [tensor for graph in model.subgraphs for tensor in graph.tensors if tensor.type in numbers]
    kept = [tensor for tensor in every if model.buffers[tensor.buffer].data is not None]
    tensor = _pick(rng, kept)
    if tensor is None:
        return ""
    data = np.array(model.buffers[tensor.buffer].data)
    if int(rng.integers(2)) and len(data) > 4:
        data = np.roll(data, 4)
    else:
        data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    model.buffers[tensor.buffer].data = data
    return "a number that an operator on the CPU reads"


def _flags(model: Any, rng: Rng) -> str:
    tensor = _pick(rng, _pick(rng, model.subgraphs).tensors)
    kind = int(rng.integers(4))
    if kind == 0:
        tensor.isVariable = not tensor.isVariable
        return "a variable or none"
    if kind == 1:
        tensor.hasRank = not tensor.hasRank
        return "a rank or none"
    if kind == 2:
        tensor.type = int(rng.integers(18))
        return "another type"
    if tensor.quantization is None or tensor.quantization.scale is None:
        return ""
    q = tensor.quantization
    if int(rng.integers(2)):
        q.scale = np.nextafter(np.array(q.scale), np.float32(9))
    else:
        q.zeroPoint = np.array(q.zeroPoint) + 1
    return "another scale or zero point"


def _signatures(model: Any, rng: Rng) -> str:
    one = _pick(rng, model.signatureDefs)
    side = one.outputs if int(rng.integers(2)) else one.inputs
    kind = int(rng.integers(6))
    if kind == 0:
        _pick(rng, side).name = b"other"
    elif kind == 1:
        _pick(rng, side).tensorIndex = int(rng.integers(len(model.subgraphs[0].tensors)))
    elif kind == 2:
        side.pop()
    elif kind == 3:
        one.signatureKey = b"other"
    elif kind == 4:
        model.signatureDefs.append(one)
    else:
        model.signatureDefs = []
    return "a signature"


def _names(model: Any, rng: Rng) -> str:
    kind, graph = int(rng.integers(4)), _pick(rng, model.subgraphs)
    if kind == 0:
        _pick(rng, graph.tensors).name = b"other"
    elif kind == 1:
        graph.name = b"other"
    elif kind == 2:
        model.description = b"other"
    else:
        a, b = _pick(rng, graph.tensors), _pick(rng, graph.tensors)
        a.name, b.name = b.name, a.name
    return "a name"


def _metadata(model: Any, rng: Rng) -> str:
    one, kind = _pick(rng, model.metadata), int(rng.integers(4))
    if kind == 0:
        one.name = b"other"
    elif kind == 1:
        model.buffers[one.buffer].data = np.frombuffer(b"other", np.uint8)
    elif kind == 2:
        model.metadata.remove(one)
    else:
        model.metadataBuffer = np.array([one.buffer], np.int32)
    return "metadata"


def _options(model: Any, rng: Rng) -> str:
    op, kind = _pick(rng, _pick(rng, model.subgraphs).operators), int(rng.integers(7))
    if kind == 0 and op.builtinOptions is not None and (fields := sorted(vars(op.builtinOptions))):
        name = _pick(rng, fields)
        value = getattr(op.builtinOptions, name)
        if not isinstance(value, bool | int | float):
            return ""
        setattr(op.builtinOptions, name, not value if isinstance(value, bool) else value + 1)
        return f"option {name}"
    if kind == 1:
        _pick(rng, model.operatorCodes).version += 1
        return "a version"
    if kind == 2:
        op.customOptions = np.frombuffer(b"{}", np.uint8)
        return "custom options"
    if kind == 3:
        op.mutatingVariableInputs = [True] * len(op.inputs)
        return "inputs that are changed"
    if kind == 4:
        op.builtinOptionsType, op.builtinOptions = schema.BuiltinOptions.SoftmaxOptions, schema.SoftmaxOptionsT()
        return "options of another operator"
    if kind == 5:
        op.intermediates = np.array([0], np.int32)
        return "an intermediate"
    attributes = read_map(bytes(bytearray(op.customOptions))) if op.customOptions is not None else {}
    plain = {name: value for name, value in attributes.items() if isinstance(value, int | str)}
    if not plain:
        return ""
    name = _pick(rng, sorted(plain))
    value = plain[name]
    forged = encode_map({**plain, name: value + 1 if isinstance(value, int) else f"{value}x"})
    op.customOptions = np.frombuffer(forged, np.uint8)
    return f"attribute {name}"


def _order(model: Any, rng: Rng) -> str:
    graph, kind = _pick(rng, model.subgraphs), int(rng.integers(5))
    if kind == 0 and len(model.subgraphs) > 1:
        model.subgraphs = [model.subgraphs[at] for at in rng.permutation(len(model.subgraphs))]
        return "graphs in another order"
    if kind == 1:
        graph.inputs, graph.outputs = rng.permutation(graph.inputs), rng.permutation(graph.outputs)
        return "inputs and outputs in another order"
    if kind == 2:
        op = _pick(rng, graph.operators)
        op.inputs = rng.permutation(op.inputs)
        return "an operator's inputs in another order"
    if kind == 3:
        graph.operators.append(_pick(rng, graph.operators))
        return "an operator twice"
    op = _pick(rng, graph.operators)
    op.outputs = np.array([*op.outputs, int(rng.integers(len(graph.tensors)))], np.int32)
    return "an output more"


STAGES: dict[str, Change] = {
    "buffers": _buffers, "shapes": _shapes, "constants": _constants, "flags": _flags, "signatures": _signatures,
    "names": _names, "metadata": _metadata, "options": _options, "order": _order,
}  # fmt: skip
FILES = ("offsets", "bytes", "blocks", "source", "certificate")
PROGRAM = "program"


def _offsets(data: bytes, rng: Rng) -> tuple[bytes, str]:
    """Store buffers behind the flatbuffer, correctly or not."""
    kind = int(rng.integers(4))
    if kind == 0:
        return data + rng.bytes(int(rng.integers(1, 80))), "bytes behind the file"
    moved = write_model(read_model(data), buffers_after=True)
    if kind == 1:
        return moved, "buffers behind the flatbuffer"
    model, tail = load(data), bytes(16)
    full = [one for one in model.buffers if one.data is not None and len(one.data)]
    one = _pick(rng, full)
    one.offset, one.size = 2, len(one.data)
    size = len(pack(model))
    one.offset = size + -size % 16
    if kind == 3:
        one.data = None
        one.offset = len(pack(model)) + int(rng.integers(3))
    packed = pack(model)
    return packed + bytes(-len(packed) % 16) + rng.bytes(one.size) + tail, "a buffer inside and behind the flatbuffer"


def _bytes(data: bytes, rng: Rng) -> tuple[bytes, str]:
    """Change one byte of the file, most often among its tables."""
    at = int(rng.integers(len(data)))
    changed = bytearray(data)
    changed[at] = (changed[at] + int(rng.integers(1, 256))) % 256
    return bytes(changed), f"byte {at}"


def _blocks(data: bytes, rng: Rng) -> tuple[bytes, str]:
    """Change one byte of the microcode, weights or kernels, and correct the checksum."""
    said = []

    def change(blocks: Any) -> None:
        block = blocks[int(rng.integers(3))]
        at = int(rng.integers(min(len(block), 512)))
        block[at] = (block[at] + int(rng.integers(1, 256))) % 256
        said.append(f"byte {at} of a block")

    return reseal_blocks(data, change)[0], said[0]


def judge_file(seed: int) -> ChangedFile | None:
    """Change and check one LiteRT file; None when the drawn change is impossible in this model."""
    rng = np.random.default_rng((seed, 31))
    names, stages = sorted(sources()), (*STAGES, *FILES)
    name, stage = names[seed % len(names)], stages[seed // len(names) % len(stages)]
    source = sources()[name]
    data = compile_source(name, TARGETS[int(rng.integers(len(TARGETS)))])
    try:
        changed, what, given = _change(data, source, stage, rng)
    except (AssertionError, StopIteration, struct.error, ValueError, TypeError, AttributeError, IndexError):
        return None  # the model has no such part, or the changed file cannot be written
    if not what or (changed, given) == (data, source):
        return None
    try:
        prove(changed, given, _hints(data, given, rng) if stage == "certificate" else None)
    except Refused:
        return ChangedFile(seed, name, stage, what, "refused")
    if given != source and not agree(given, given):
        return ChangedFile(seed, name, stage, what, "no source")
    same = describe(changed) == describe(given) and agree(changed, given)
    return ChangedFile(seed, name, stage, what, "equal" if same else "proved otherwise")


def _change(data: bytes, source: bytes, stage: str, rng: Rng) -> tuple[bytes, str, bytes]:
    if stage in STAGES:
        model = load(data)
        what = STAGES[stage](model, rng)
        return pack(model), what, source
    if stage == "source":
        given, what = _bytes(source, rng)
        return data, what, given
    change = {"offsets": _offsets, "bytes": _bytes, "blocks": _blocks, "certificate": _blocks}[stage]
    changed, what = change(data, rng)
    return changed, what, source


@cache
def _proof(data: bytes, source: bytes) -> Proof:
    return prove(data, source)


def _hints(data: bytes, source: bytes, rng: Rng) -> Hints:
    """Return what a certificate of the unchanged file says, about the changed one, with some of it wrong."""
    numbers = dict(_proof(data, source).recognised)
    for call in list(numbers):
        if not int(rng.integers(4)):
            numbers[call] = int(rng.integers(-1, len(numbers) + 2))
    return numbers


def describe(data: bytes) -> tuple[Any, ...]:
    """Return the shapes, names and signatures of a file, as LiteRT's own code reads them."""
    model = load(data)
    graph = model.subgraphs[0]

    def plain(values: Any) -> Any:
        return None if values is None else tuple(np.asarray(values).tolist())

    def tensor(index: int) -> tuple[Any, ...]:
        one = graph.tensors[index]
        q = one.quantization
        scale = (plain(q.scale) or None, plain(q.zeroPoint) or None) if q is not None else (None, None)
        return one.name, plain(one.shape) or (), one.type, scale, one.isVariable, one.hasRank

    def positions(side: Any, border: Any) -> list[Any]:
        return [(one.name, [at for at, index in enumerate(border) if index == one.tensorIndex]) for one in side or ()]

    signatures = [(one.signatureKey, one.subgraphIndex, positions(one.inputs, graph.inputs),
                   positions(one.outputs, graph.outputs))
                  for one in model.signatureDefs or ()]  # fmt: skip
    metadata = [(one.name, bytes(model.buffers[one.buffer].data)) for one in model.metadata or ()]
    border = [[tensor(index) for index in side] for side in (graph.inputs, graph.outputs)]
    return border, signatures, metadata, model.description, graph.name


def judge_program(seed: int, data: bytes, part: Callable[[str], bytes]) -> ChangedFile:
    """Change and check one `.pte` or bundle: one byte anywhere, with correct checksums."""
    rng = np.random.default_rng((seed, 32))
    found = delegates(data)
    place = ("program", "payload", "bundle")[seed % 3]
    kept = {name: part(name) for name in (FRAME, "partition_0.tflite", "partition_0_converted.tflite")}
    changed, files = bytearray(data), dict(kept)
    if place == "bundle":
        name = _pick(rng, ("partition_0_converted.tflite", FRAME))
        files[name], what = _bytes(files[name], rng)
    else:
        low, end = (found[0].starts[0] - 32, found[0].end) if place == "payload" else (0, len(data))
        at = int(rng.integers(low, end))
        changed[at] = (changed[at] + int(rng.integers(1, 256))) % 256
        what = f"byte {at}"
        start = data.rindex(bytes([len(found[0].inputs), len(found[0].outputs)]), 0, found[0].starts[0])
        crc = zlib.crc32(bytes(changed[start : found[0].end - 4]))
        if start <= at < found[0].end - 4:
            changed[found[0].end - 4 : found[0].end] = crc.to_bytes(4, "little")
    try:
        prove_program(bytes(changed), files.__getitem__)
    except Refused:
        return ChangedFile(seed, "program", f"{PROGRAM}: {place}", what, "refused")
    same = bytes(changed) == data
    return ChangedFile(seed, "program", f"{PROGRAM}: {place}", what, "equal" if same else "proved otherwise")


def table(found: Iterable[ChangedFile]) -> str:
    """Return counts by stage and outcome, as Markdown."""
    found = list(found)
    counts = Counter((one.stage, one.outcome) for one in found)
    stages = [*STAGES, *FILES, *sorted({one.stage for one in found if one.stage.startswith(PROGRAM)})]
    rows = [f"| changed in the file | {' | '.join(OUTCOMES)} | all |", f"|---|{'---:|' * (len(OUTCOMES) + 1)}"]
    for stage in (*stages, "all"):
        numbers = [
            sum(n for (s, o), n in counts.items() if o == outcome and stage in (s, "all")) for outcome in OUTCOMES
        ]
        rows.append(f"| {stage} | {' | '.join(f'{n:,}' for n in numbers)} | {sum(numbers):,} |")
    return "\n".join(rows)
