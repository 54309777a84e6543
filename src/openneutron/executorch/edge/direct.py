"""Convert an exported program to Edge directly: node by node the result of ExecuTorch's retraces and passes.

Those run the graph a dozen times. Quantized networks consist of few operators, whose results are known; a program with any
other operator takes ExecuTorch's way.

Example:
    >>> edge = direct_edge(program, whole=())
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from executorch.exir.passes.debug_handle_generator_pass import DebugHandleGeneratorPass
from executorch.exir.verification.verifier import EXIREdgeDialectVerifier
from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature, InputKind, OutputKind
from torch.fx import GraphModule, Node

from openneutron.executorch.edge.draft import Draft, Unknown
from openneutron.executorch.edge.rules import is_known, is_redundant, write
from openneutron.executorch.fx import is_dequantize, is_quantize, operator_name, value_of
from openneutron.executorch.upstream.edge_names import unchecked_config
from openneutron.executorch.upstream.names import OpOverload


def direct_edge(program: ExportedProgram, whole: Iterable[OpOverload]) -> ExportedProgram:
    """Return the Edge program, without decomposing the operators in `whole`; raises `Unknown` if that needs a retrace."""
    check(program)
    draft = Draft(_fake_mode(program))
    gone = _unused_parameters(program)
    kept = frozenset(whole)
    for node in program.graph.nodes:
        if node.op == "placeholder":
            if node.name not in gone:
                made = draft.graph.placeholder(node.name)
                made.meta = dict(node.meta)
                draft.made[node] = made
        elif is_redundant(node):
            continue
        elif node.op == "call_function":
            draft.made[node] = write(draft, node, kept)
        elif node.op == "output":
            results = draft.of(node.args[0])
            made = draft.graph.output(results)
            made.meta = {**node.meta, "val": tuple(map(value_of, results))}
        else:
            raise Unknown(node.op)
    # A placeholder with the name of a Python builtin, such as "input", is renamed.
    names = {node.name: made.name for node, made in draft.made.items()}
    module = GraphModule(program.graph_module, draft.graph)
    module.meta.update(program.graph_module.meta)
    DebugHandleGeneratorPass()(module)
    unused = {spec.target for spec in program.graph_signature.input_specs if spec.arg.name in gone}
    verifier = EXIREdgeDialectVerifier(edge_compile_config=unchecked_config(), class_only=True)
    return ExportedProgram(
        root=module,
        graph=module.graph,
        graph_signature=_signature(program.graph_signature, gone, names),
        state_dict={name: value for name, value in program.state_dict.items() if name not in unused},
        range_constraints=program.range_constraints,
        module_call_graph=program.module_call_graph,
        example_inputs=program.example_inputs,
        constants=program.constants,
        verifiers=[verifier],
    )


def check(program: ExportedProgram) -> None:
    """Raise `Unknown` for operators without a rule, and for other content that ExecuTorch's passes would change."""
    signature = program.graph_signature
    if any(spec.kind not in (OutputKind.USER_OUTPUT, OutputKind.BUFFER_MUTATION) for spec in signature.output_specs):
        raise Unknown("an input that is written")
    tensors = {**program.state_dict, **program.constants}
    for name, value in tensors.items():
        if not isinstance(value, torch.Tensor) or not (value.is_contiguous() or _is_channels_last(value)):
            raise Unknown(f"{name}, which is neither contiguous nor channels-last")
    results = program.graph.output_node().args[0]
    for node in results if isinstance(results, (tuple, list)) else [results]:
        if not isinstance(node, Node) or node.op != "call_function":
            raise Unknown("an output that nothing computes")
    for node in program.graph.nodes:
        if is_redundant(node):
            continue
        if node.op == "call_function" and not is_known(node):
            raise Unknown(f"{operator_name(node)} ({node.name})")
        if node.op == "call_function" and not node.users:
            raise Unknown(f"{operator_name(node)} ({node.name}), whose result is unused")
        if is_dequantize(node) and any(is_quantize(user) and user.args[1:] == node.args[1:] for user in node.users):
            raise Unknown(f"{operator_name(node)} ({node.name}), which is quantized again")


def _is_channels_last(value: torch.Tensor) -> bool:
    return value.dim() == 4 and value.is_contiguous(memory_format=torch.channels_last)


def _fake_mode(program: ExportedProgram) -> Any:
    for node in program.graph.nodes:
        mode = getattr(value_of(node), "fake_mode", None)
        if mode is not None:
            return mode
    raise Unknown("a program without values")


def _unused_parameters(program: ExportedProgram) -> set[str]:
    parameters = {spec.arg.name for spec in program.graph_signature.input_specs if spec.kind is InputKind.PARAMETER}
    return {
        node.name
        for node in program.graph.nodes
        if node.op == "placeholder" and node.name in parameters and not node.users
    }


def _signature(signature: ExportGraphSignature, gone: set[str], names: Mapping[str, str]) -> ExportGraphSignature:
    def rename_output(spec: Any) -> Any:
        return dataclasses.replace(spec, arg=dataclasses.replace(spec.arg, name=names[spec.arg.name]))

    return dataclasses.replace(
        signature,
        input_specs=[rename_output(spec) for spec in signature.input_specs if spec.arg.name not in gone],
        output_specs=[rename_output(spec) for spec in signature.output_specs],
    )
