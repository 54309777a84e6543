"""`NeutronBackend`: turns a delegated subgraph into the delegate's payload."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from torch.export import ExportedProgram
from torch.fx import Node

from openneutron.compiler.plan.constants import KnownWeights
from openneutron.convert import convert_alone, with_board_estimate
from openneutron.errors import ConverterError, OpenNeutronError
from openneutron.executorch.compile_spec import from_specs, one_graph_options
from openneutron.executorch.deliver.intermediates import write_intermediates, write_kernel_selection
from openneutron.executorch.deliver.output_order import reorder_converted, reorder_outputs
from openneutron.executorch.deliver.session import Trial, known_weights_of, take_trial
from openneutron.executorch.deliver.spill import Spilled
from openneutron.executorch.lower.encoding import Constants, Rejected
from openneutron.executorch.lower.lowering import Lowered, Region, State, lower
from openneutron.executorch.upstream.edge_names import preprocess_result
from openneutron.litert.graph import Graph
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.microcode.payload import build_payload
from openneutron.options import Options
from openneutron.report.model import Kernel, Report, to_json
from openneutron.result import Result


@dataclass(frozen=True)
class Partition:
    """Everything known about one compiled partition; it travels beside the program, not inside it.

    `litert` is the model that was converted. Its input k is the delegate's argument `input_map[k]`, and its outputs are the
    delegate's in order. The formats say which of them are channels-last.
    """

    index: int
    litert_file: Spilled
    converted_file: Spilled
    report: Report
    debug_handles: tuple[tuple[int, ...], ...]
    input_formats: tuple[int, ...]
    output_formats: tuple[int, ...]
    input_map: tuple[int, ...]
    kernel_selection_code: str = ""
    log: str = ""
    passes: dict[str, int] = field(default_factory=dict)
    transposes: int = 0
    dumps: dict[str, str] = field(default_factory=dict)

    @property
    def litert(self) -> bytes:
        """The model that was converted."""
        return self.litert_file.read()

    @property
    def converted(self) -> bytes:
        """What the converter made of it."""
        return self.converted_file.read()

    def files(self) -> dict[str, bytes | str]:
        """Everything worth looking at, by file name."""
        stem = f"partition_{self.index}"
        found: dict[str, bytes | str] = {
            f"{stem}.tflite": self.litert,
            f"{stem}_converted.tflite": self.converted,
            f"{stem}_report.json": to_json(self.report),
        }
        found |= {f"{stem}_{name}": text for name, text in self.dumps.items()}
        if self.log:
            found[f"{stem}.log"] = self.log
        if self.kernel_selection_code:
            found[self.kernel_selection_file] = self.kernel_selection_code
        return found

    @property
    def kernel_selection_file(self) -> str:
        """The name of its kernel selection's file."""
        return f"partition_{self.index}_kernel_selection.c"


class NeutronBackend(BackendDetails):
    """The backend; ExecuTorch finds it by its class name."""

    @classmethod
    def copy_exported_program_for_preprocess(cls, edge_program: ExportedProgram, compile_specs: list[Any]) -> Any:
        """Nothing here edits the program, so it is not copied."""
        return edge_program

    @staticmethod
    def preprocess(edge_program: ExportedProgram, compile_specs: list[Any]) -> PreprocessResult:
        """Lower to LiteRT, convert, build the payload; `info_of` the delegate is the `Partition`."""
        options = from_specs(compile_specs)
        trial, known = take_trial(compile_specs), known_weights_of(compile_specs)
        partition, payload = compile_partition(edge_program, options, trial, known)
        handles = {
            name: _handles(kernel, partition) for kernel in partition.report.kernels for name in event_names(kernel)
        }
        return preprocess_result(payload, handles, partition)


def compile_partition(
    program: ExportedProgram, options: Options, trial: Trial | None = None, known: KnownWeights | None = None
) -> tuple[Partition, bytes]:
    """Compile a delegated subgraph to its payload; `trial` is what partitioning made of it.

    The weights begin with those that are `known` from another method.
    """
    first, result = lower_partition(program, options, trial)
    litert = write_model(first.model)
    full = dataclasses.replace(one_graph_options(options, f"partition {options.partition}"), known_weights=known)
    result = _complete(result if known is None else None, litert, full)
    lowered = reorder_outputs(first, _results(program, states_of(program)))
    if lowered is not first:
        litert = write_model(lowered.model)
        result = dataclasses.replace(result, model=reorder_converted(result.model, lowered.model))
    neutron = read_model(result.model, source=f"partition {options.partition}, converted").main
    blocks = _blocks(neutron, options, result)
    arguments = _arguments(program, states_of(program))
    source = lowered.model.main
    # The microcode numbers its buffers as the operator lists them, which need not be the graph's order.
    operator, spare = neutron.operators[0], 3 if options.use_profiling else 1
    places = [arguments.index(node) for node in lowered.inputs]
    input_map = _map(neutron, operator.inputs[:-3], source, source.inputs, places)
    positions = list(range(len(lowered.outputs)))
    output_map = _map(neutron, operator.outputs[:-spare], source, source.outputs, positions)
    formats = dict(zip(places, lowered.input_formats, strict=True))
    payload = build_payload(
        *blocks, [formats[index] for index in input_map], [lowered.output_formats[index] for index in output_map],
        input_map, output_map, len(arguments), 1 if options.use_profiling else 0, options.target, options.converter,
        result.report.converter_version,
    )  # fmt: skip
    partition = Partition(
        index=options.partition, litert_file=Spilled(litert), converted_file=Spilled(result.model), report=result.report,
        debug_handles=tuple(lowered.debug_handles), input_formats=tuple(lowered.input_formats),
        output_formats=tuple(lowered.output_formats), input_map=tuple(places),
        kernel_selection_code=result.kernel_selection_code,
        log=result.log, passes=lowered.passes, transposes=lowered.transposes, dumps=dict(result.intermediates),
    )  # fmt: skip
    if options.intermediates_dir:
        write_intermediates(options.intermediates_dir, partition)
    elif options.kernel_selection_dir:
        write_kernel_selection(options.kernel_selection_dir, partition)
    return partition, payload


def lower_partition(
    program: ExportedProgram, options: Options, trial: Trial | None = None
) -> tuple[Lowered, Result | None]:
    """A delegated subgraph as a LiteRT model, and its conversion if there is one: those of its trial where it has one.

    Outputs may be in another order than the program's.
    """
    constants = Constants(program)
    states = states_of(program)
    nodes = [node for node in program.graph.nodes if node.op == "call_function"]
    region = Region(nodes, _arguments(program, states), _results(program, states), states)
    found = None if trial is None else trial.in_nodes_of(region, constants)
    if found is not None:
        assert trial is not None
        return found, trial.result
    try:
        return lower(region, constants, options), None
    except Rejected as rejected:
        raise ConverterError(
            f"{rejected.node.name} was delegated but does not lower: {rejected.reason}",
            hint="partition with NeutronPartitioner, which checks that",
        ) from rejected


def _complete(result: Result | None, litert: bytes, options: Options) -> Result:
    """The conversion of a partition under its own name, with what its report says of NXP's converter."""
    if result is None:
        result = convert_alone(litert, options)
    named = dataclasses.replace(result, report=dataclasses.replace(result.report, source=options.source))
    return with_board_estimate(named, litert, options)


def states_of(program: ExportedProgram) -> list[State]:
    """The buffers that a program changes."""
    signature = program.graph_signature
    by_name = {node.name: node for node in program.graph.nodes}
    reads = {fqn: by_name[name] for name, fqn in signature.inputs_to_buffers.items() if name in by_name}
    return [State(fqn, reads[fqn], by_name[name]) for name, fqn in signature.buffers_to_mutate.items() if fqn in reads]


def _results(program: ExportedProgram, states: list[State]) -> list[Node]:
    """The nodes whose values the delegate returns at each call."""
    written = {state.written for state in states}
    returned = program.graph.output_node().args[0]
    return [node for node in returned if isinstance(node, Node) and node not in written]  # type: ignore[union-attr]


def _arguments(program: ExportedProgram, states: list[State]) -> list[Node]:
    """The placeholders whose values the delegate gets at each call."""
    constants, kept = Constants(program), {state.read for state in states}
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    return [node for node in placeholders if node not in constants and node not in kept]


def ensure_only_backend() -> None:
    """Refuse to run beside another class of this name: ExecuTorch finds backends by class name and takes the first."""
    for cls in BackendDetails.__subclasses__():
        if cls.__name__ == NeutronBackend.__name__ and cls is not NeutronBackend:
            raise OpenNeutronError(
                f"another class named NeutronBackend is loaded, from {cls.__module__}",
                where="NeutronPartitioner",
                hint="ExecuTorch picks backends by class name and would use the other one; do not import it in this process",
            )


def event_names(kernel: Kernel) -> list[str]:
    """The delegate's names for the events of a kernel's calls, in the order of a run (runtime/host/delegate/events.h)."""
    name = f"{kernel.kernel}:{kernel.node}"
    return [name, *(f"{name}.{call}" for call in range(1, kernel.calls))]


def _handles(kernel: Kernel, partition: Partition) -> tuple[int, ...]:
    """The debug handles of the nodes that a kernel computes."""
    return tuple(sorted({handle for op in kernel.operators for handle in partition.debug_handles[op]}))


def _blocks(graph: Graph, options: Options, result: Result) -> tuple[memoryview, memoryview, memoryview]:
    """Microcode, weights and kernels of the one NeutronGraph."""
    codes = [op.label for op in graph.operators]
    if codes != ["NeutronGraph"]:
        left = [f"{op.code}: {op.reason}" for op in result.report.operators if not op.converted]
        raise ConverterError(
            f"the {options.converter} converter left operators outside its graph: {', '.join(codes)}",
            where=f"partition {options.partition}",
            hint="; ".join(left) or "name them in operators_not_to_delegate",
        )
    constants = [graph.tensors[index].data for index in graph.operators[0].inputs[-3:]]
    if any(block is None for block in constants):
        raise ConverterError(
            "the converted model has no microcode, weights or kernels", where=f"partition {options.partition}"
        )
    return tuple(block.reshape(-1).data for block in constants if block is not None)  # type: ignore[return-value]


def _map(converted: Graph, tensors: list[int], source: Graph, names: list[int], positions: list[int]) -> list[int]:
    """Position of each converted input or output among the delegate's arguments, by tensor name."""
    by_name = {source.tensors[tensor].name: place for tensor, place in zip(names, positions, strict=True)}
    try:
        return [by_name[converted.tensors[tensor].name] for tensor in tensors]
    except KeyError as error:
        raise ConverterError(
            f"the converted model has an input or output named {error}, the source has none"
        ) from error
