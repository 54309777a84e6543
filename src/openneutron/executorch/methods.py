"""Further methods of a program: calls of the same model with inputs of other sizes, which share its weights and states.

A decoder has one for prompts, of many tokens, beside that of one token. Each method is a delegate of its own. Its ranges are
those of `forward`, so both round weights and states alike, and its weights block begins with that of `forward`: the longest
is stored once, as named data, and the delegate gives one state to all methods of a program.

Example:
    >>> added = add_methods(built, model, {"prefill": (tokens, positions)}, calibration=calibration, ...)
    >>> added.pte
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from executorch.exir import EdgeProgramManager
from torch.export import ExportedProgram
from torch.fx import GraphModule

from openneutron.compiler.plan.constants import KnownWeights
from openneutron.errors import InternalError, OptionError, UnsupportedError
from openneutron.executorch.capture.export import Inputs, evaluation, export
from openneutron.executorch.deliver.backend import Partition
from openneutron.executorch.deliver.session import CompileSession
from openneutron.executorch.edge.delegate import delegate
from openneutron.executorch.engines import Engines
from openneutron.executorch.lower.layer_calls import LayerBodies
from openneutron.executorch.partition.passes.keep_layers_whole import contract_layers
from openneutron.executorch.place.whole_program import whole_program
from openneutron.executorch.program_lowering import seal_program
from openneutron.executorch.quantize.post_training import quantize_exported
from openneutron.executorch.quantize.transfer import transfer
from openneutron.executorch.quantized_model import Quantized
from openneutron.executorch.upstream.edge_names import (
    delegates_of,
    info_of,
    payload_of,
    replace_payload,
    share_data,
    unchecked_config,
)
from openneutron.executorch.upstream.names import with_graph
from openneutron.microcode.decode import decode, header_of
from openneutron.microcode.payload import parse_payload
from openneutron.microcode.shared_weights import key_of, without_weights
from openneutron.microcode.table import ALIGNMENT
from openneutron.options import Options

_SAMPLES: Final = 4  # calls with which a method's graph is prepared; ranges come from `forward`


@dataclass(frozen=True)
class Added:
    """A program with its methods: the `.pte`, the partitions of the methods in order, notes and estimated times."""

    pte: bytes
    partitions: tuple[Partition, ...]
    notes: tuple[str, ...]
    executorch_program: Any
    milliseconds: dict[str, float]


def check_methods(methods: Mapping[str, Any], engines: Engines, spec: Options, *, int8_io: bool) -> None:
    """Refuse methods that no program can have."""
    for name, inputs in methods.items():
        if not isinstance(name, str) or not name.isidentifier() or name == "forward":
            raise OptionError(
                f"a method is called {name!r}", hint="give a Python name other than forward, e.g. prefill"
            )
        if (
            not isinstance(inputs, (tuple, list))
            or not inputs
            or not all(isinstance(one, torch.Tensor) for one in inputs)
        ):
            raise OptionError(f"method {name} has no inputs", hint="give a tuple of tensors, as example_inputs")
    if methods and (not engines.neutron or engines.cortex_m or spec.converter != "open" or int8_io):
        raise OptionError(
            "methods are for programs of the open converter alone with float or integer inputs",
            hint="leave out recipe, converter and int8_io",
        )


def samples_of(example: Inputs, calibration: Sequence[Inputs], inputs: Inputs) -> list[Inputs]:
    """Return calls of a method from calls of `forward`: as many in a row are joined as its inputs are longer.

    Without such calls the inputs themselves are returned.

    Example:
        >>> samples_of((token, position), calibration, (tokens, positions))
    """
    axes = [_longer(one, other) for one, other in zip(example, inputs, strict=False)]
    count = max((size for _, size in axes), default=0)
    if len(example) != len(inputs) or any(size not in (1, count) for _, size in axes) or count < 1:
        return [inputs]
    found = []
    for at in range(0, min(len(calibration), _SAMPLES * count) - count + 1, count):
        rows = calibration[at : at + count]
        joined = (
            torch.cat([row[place] for row in rows], axis) if size > 1 else rows[0][place]
            for place, (axis, size) in enumerate(axes)
        )
        found.append(tuple(joined))
    fits = all(a.shape == b.shape for sample in found for a, b in zip(sample, inputs, strict=True))
    return found if found and fits else [inputs]


def _longer(one: torch.Tensor, other: torch.Tensor) -> tuple[int, int]:
    """Return the dimension in which `other` is longer and how many times; (0, 0) where no one dimension is."""
    if one.shape == other.shape:
        return 0, 1
    if one.dim() != other.dim() or one.dtype is not other.dtype:
        return 0, 0
    longer = [axis for axis in range(one.dim()) if one.shape[axis] != other.shape[axis]]
    size, rest = divmod(other.shape[longer[0]], one.shape[longer[0]])
    return (longer[0], size) if len(longer) == 1 and not rest else (0, 0)


def quantize_method(
    name: str, model: torch.nn.Module, inputs: Inputs, made: Quantized, engines: Engines, bodies: LayerBodies
) -> Quantized:
    """Quantize a method as `forward` was."""
    samples = samples_of(made.calibration[0], made.calibration, inputs)
    plain = made.choices.without_fitting()
    with evaluation(model):
        exported = export(model, inputs, what=f"method {name}")
        found = quantize_exported(exported, samples, plain, engines.quantizer(plain))
        difference = transfer(made.module, found.module)
        if difference:
            raise UnsupportedError(
                f"method {name} has other operators than forward: {difference}",
                hint="let both run the same lines of the model, with inputs of other sizes",
            )
        program = export(contract_layers(found.module, bodies), inputs, what=f"the quantized method {name}")
    return Quantized(found.module, program, exported, samples, (), (), choices=plain)


def add_methods(
    edge: ExportedProgram,
    made: Quantized,
    model: torch.nn.Module,
    methods: Mapping[str, Inputs],
    *,
    spec: Options,
    engines: Engines,
    placement: str,
    constants: Mapping[str, Any],
) -> Added:
    """Return the program of `edge`, lowered and quantized as `made`, with methods beside `forward`."""
    edges = {"forward": _copy_program(edge)}
    payload = _only_payload(edges["forward"], "forward")
    blocks = [payload]
    partitions: list[Partition] = []
    times: dict[str, float] = {}
    for name, inputs in sorted(methods.items()):
        known = _known_weights(blocks[-1])
        session = CompileSession(first=len(blocks), known_weights=known)
        quantized = quantize_method(name, model, inputs, made, engines, session.bodies)
        partitioner = engines.partitioner(spec, placement, session)
        assert partitioner is not None
        edges[name] = delegate(quantized.program, partitioner).manager.exported_program()
        blocks.append(_only_payload(edges[name], name))
        _check_states(payload, blocks[-1], name)
        (info,) = (info_of(one) for one in delegates_of(edges[name].graph_module))
        partitions.append(info)
        whole = whole_program(edges[name], [info], target=spec.target, recipe=engines.name, arena_bytes=0)
        times[name] = whole.milliseconds
    _share_weights(list(edges.values()), blocks)
    manager = EdgeProgramManager(edges, dict(constants) or None, compile_config=unchecked_config())
    pte, program = seal_program(manager)
    notes = [_note(name, inputs, one) for (name, inputs), one in zip(sorted(methods.items()), partitions, strict=True)]
    return Added(pte, tuple(partitions), tuple(notes), program, times)


def _copy_program(edge: ExportedProgram) -> ExportedProgram:
    """Return the program with delegates of its own, whose payloads may change."""
    module = GraphModule(edge.graph_module, copy.deepcopy(edge.graph))
    for name, one in list(module.named_children()):
        if payload_of(one) is not None:
            setattr(module, name, copy.copy(one))
    return with_graph(edge, module, edge.graph_signature)


def _only_payload(edge: ExportedProgram, name: str) -> bytes:
    found = [payload_of(one) for one in delegates_of(edge.graph_module)]
    if len(found) != 1 or found[0] is None:
        raise UnsupportedError(
            f"{name} is {len(found)} parts on the NPU; methods share weights and states where each is one",
            hint="see program.verdicts for what stays on the CPU",
        )
    return found[0]


def _known_weights(payload: bytes) -> KnownWeights:
    found = parse_payload(payload, where="forward")
    program = decode(found.microcode, found.weights, found.kernels)
    return KnownWeights.of(program, len(found.weights))


def _check_states(one: bytes, other: bytes, name: str) -> None:
    """Refuse a method that keeps other states than `forward`, or in another order."""
    first, second = (parse_payload(data, where=name).microcode for data in (one, other))
    sizes = [[(row.offset, row.bytes) for row in decode(code, verify=False).states] for code in (first, second)]
    if sizes[0] != sizes[1] or header_of(first)["state_bytes"] != header_of(second)["state_bytes"]:
        raise UnsupportedError(
            f"method {name} keeps other states than forward", hint="let both change the same buffers in the same order"
        )


def _share_weights(edges: Sequence[ExportedProgram], payloads: Sequence[bytes]) -> None:
    """Store the weights of the last payload, with which those of the others begin, once for all."""
    blocks = [parse_payload(one, where="method").weights for one in payloads]
    shared = blocks[-1]
    if any(shared[: len(one)] != one for one in blocks):
        raise InternalError("the weights of a method do not begin with those of forward")
    key = key_of(shared)
    for edge, payload in zip(edges, payloads, strict=True):
        (one,) = delegates_of(edge.graph_module)
        replace_payload(one, without_weights(payload, key, where="method"))
        share_data(one, key, shared, ALIGNMENT)


def _note(name: str, inputs: Inputs, partition: Partition) -> str:
    sizes = ", ".join(f"{str(one.dtype).removeprefix('torch.')} {list(one.shape)}" for one in inputs)
    return (
        f"method {name} ({sizes}): {partition.report.totals.cycles:,} cycles; it shares weights and states with forward"
    )
