"""Claim: decides which nodes that the NPU left in a lowered program run as Cortex-M operators, and marks them.

The passes fold quantize and dequantize into every marked node, and compute wrong results if an operator does not fit. So
every condition they rely on is checked here first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node

from openneutron.executorch.cortex_m.backend_parts import CortexMBackend, cortex_m_backend
from openneutron.executorch.cortex_m.recompose_linear import recompose_linear
from openneutron.executorch.cortex_m.rules import RULES, Context, activation_fits, is_activation
from openneutron.executorch.fx import arguments, is_dequantize, is_kept_float, is_quantize, operator_name
from openneutron.executorch.lower.encoding import Constants, Encoding, encoding_of
from openneutron.executorch.partition.clusters import Cluster, find_clusters, is_border

_BIASED = frozenset({"aten.convolution.default", "aten.linear.default"})


@dataclass(frozen=True)
class Claim:
    """The engine of a leftover node: "cortex_m", or "portable" with the reason why Cortex-M cannot run it.

    A `folded` quantize or dequantize is no longer a node.
    """

    engine: str
    reason: str = ""
    folded: bool = False


_UNCLAIMED = Claim("portable")


def claim_leftovers(program: ExportedProgram) -> dict[str, Claim]:
    """Edit the program in place: mark nodes for Cortex-M, store their biases as INT32; returns node name → claim.

    Example:
        >>> claims = claim_leftovers(edge.exported_program())
        >>> program = run_cortex_m_passes(edge.exported_program(), "cortex-m33")
    """
    backend = cortex_m_backend(where="claim")
    recompose_linear(program)
    constants = Constants(program)
    claims: dict[str, Claim] = {}
    for cluster in find_clusters(program.graph):
        reason = _reason(cluster, constants)
        for node in cluster.nodes:
            claims[node.name] = Claim("portable", reason) if reason else Claim("cortex_m", folded=is_border(node))
        if not reason:
            _mark(program, cluster, constants, backend)
    for node in program.graph.nodes:
        if node.op == "call_function" and node.name not in claims and is_border(node):
            claims[node.name] = Claim("cortex_m")
        elif claims.get(node.name, _UNCLAIMED).engine != "cortex_m":
            _unmark(node, backend)
    program.graph_module.recompile()
    return claims


def _reason(cluster: Cluster, constants: Constants) -> str:
    """Return why Cortex-M operators cannot run the cluster, "" if they can."""
    cores = cluster.cores
    if not cores:
        return "it only converts between encodings"
    if any(is_kept_float(node) for node in cores):
        return "you asked to keep it in float"
    main, after = cores[0], cores[1:]
    if len(after) > 1 or (after and not is_activation(after[0])):
        names = ", ".join(operator_name(node) for node in cores)
        return f"{names} compute in float between two stored values"
    rule: Callable[[Context], str] | None = RULES.get(operator_name(main))
    if rule is None:
        return f"Cortex-M has no operator for {operator_name(main)}"
    encodings = _encodings(cluster, main, constants)
    if isinstance(encodings, str):
        return encodings
    inputs, output = encodings
    context = Context(main, arguments(main), inputs, output, constants)
    return rule(context) or (activation_fits(after[0], output) if after else "")


def _encodings(cluster: Cluster, main: Node, constants: Constants) -> tuple[dict[Node, Encoding], Encoding] | str:
    results = [node for node in cluster.nodes if is_quantize(node)]
    if len(results) != 1:
        return f"its result is stored {len(results)} times"
    inputs = {node: encoding_of(node, constants) for node in main.all_input_nodes if is_dequantize(node)}
    if not inputs:
        return "its input is not quantized"
    return inputs, encoding_of(results[0], constants)


def _mark(program: ExportedProgram, cluster: Cluster, constants: Constants, backend: CortexMBackend) -> None:
    for node in cluster.cores:
        custom = dict(node.meta.get("custom") or {})
        custom[backend.annotation.CUSTOM_META_KEY] = backend.annotation(quantized=True)
        node.meta["custom"] = custom
        if operator_name(node) in _BIASED:
            _store_bias(program, node, constants, backend)


def _unmark(node: Node, backend: CortexMBackend) -> None:
    """Remove the annotations of Cortex-M's quantizer; otherwise the passes would still fold quantize and dequantize."""
    custom = dict(node.meta.get("custom") or {})
    if custom.pop(backend.annotation.CUSTOM_META_KEY, None) is not None:
        node.meta["custom"] = custom


def _store_bias(program: ExportedProgram, node: Node, constants: Constants, backend: CortexMBackend) -> None:
    """Replace a float bias by INT32 at input scale x weight scale, which CMSIS-NN adds to its accumulators."""
    given = arguments(node)
    bias = given["bias"]
    if bias is None or is_dequantize(bias):
        return
    scale = np.float64(encoding_of(given["input"], constants).quantization.scale[0])
    weights = np.asarray(encoding_of(given["weight"], constants).quantization.scale, np.float64)
    stored = np.clip(np.rint(constants.array(bias).astype(np.float64) / (scale * weights)), -(2**31), 2**31 - 1)
    first = next(one for one in program.graph.nodes if one.op == "placeholder")
    with program.graph.inserting_before(first):
        made = backend.create_constant(
            program, program.graph, f"{node.name}_int32_bias", InputKind.PARAMETER,
            torch.from_numpy(stored.astype(np.int32)),
        )  # fmt: skip
    node.update_arg(2, made)
