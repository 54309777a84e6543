"""LeftoverQuantizer: annotates for Cortex-M the nodes that the NPU's quantizer skipped.

It runs after `NeutronQuantizer` in a `ComposableQuantizer`. Where an edge leads from one quantizer's node to the other's, the
reader takes the producer's parameters, so that no value is quantized twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e.quantizer import (
    QuantizationAnnotation,
    QuantizationSpec,
    Quantizer,
    SharedQuantizationSpec,
)
from torchao.quantization.pt2e.quantizer.quantizer import Q_ANNOTATION_KEY

from openneutron.executorch.cortex_m.backend_parts import cortex_m_backend
from openneutron.executorch.quantize.specs import Specs


class LeftoverQuantizer(Quantizer):
    """Runs ExecuTorch's `CortexMQuantizer` on the nodes that are not annotated yet.

    `excluded` says which nodes the user wants in float. After annotation `owners` maps each node to its quantizer.

    Example:
        >>> neutron = NeutronQuantizer()
        >>> prepared = prepare_pt2e(model, ComposableQuantizer([neutron, LeftoverQuantizer(neutron.excludes)]))
    """

    def __init__(self, excluded: Callable[[Node], bool] = lambda node: False, *, is_qat: bool = False) -> None:
        super().__init__()
        self._backend = cortex_m_backend(where="LeftoverQuantizer")
        self._excluded = excluded
        self._is_qat = is_qat
        self.owners: dict[str, str] = {}

    def transform_for_annotation(self, model: GraphModule) -> GraphModule:
        """Return the graph unchanged: the NPU's quantizer has rewritten it, and Cortex-M's rewrites would undo some of that."""
        return model

    def annotate(self, model: GraphModule) -> GraphModule:
        """Annotate the remaining nodes, then unify parameters on edges between the two quantizers."""
        first = {node for node in model.graph.nodes if Q_ANNOTATION_KEY in node.meta}
        left_alone = [node for node in model.graph.nodes if node not in first and self._stays_float(node)]
        for node in (*first, *left_alone):
            node.meta[self._backend.matched_key] = True
        for node in left_alone:
            node.meta[Q_ANNOTATION_KEY] = QuantizationAnnotation(_annotated=True)
        self._backend.quantizer(self._config(), use_explicit_layout=True).annotate(model)
        second = {node for node in model.graph.nodes if Q_ANNOTATION_KEY in node.meta} - first - set(left_alone)
        for node in model.graph.nodes:
            if node in first or node in second:
                _agree(node, second)
        self.owners = {node.name: "neutron" for node in first} | {node.name: "cortex_m" for node in second}
        return model

    def validate(self, model: GraphModule) -> None:
        """Do nothing: nodes that Cortex-M cannot run use portable kernels."""

    def _stays_float(self, node: Node) -> bool:
        return node.op in ("placeholder", "output", "get_attr") or self._excluded(node)

    def _config(self) -> Any:
        specs = Specs(self._is_qat, per_channel=False, observer="histogram")
        activation = specs.activation()
        return self._backend.per_tensor_config(activation, activation, specs.weight(), None, "openneutron leftovers")


def _agree(node: Node, second: set[Node]) -> None:
    """Let a node read its inputs with their producers' parameters, if one of the two belongs to the second quantizer."""
    annotation = node.meta[Q_ANNOTATION_KEY]
    for source, spec in annotation.input_qspec_map.items():
        made = source.meta.get(Q_ANNOTATION_KEY)
        crosses = node in second or source in second
        if crosses and _is_free(spec) and made is not None and made.output_qspec is not None:
            annotation.input_qspec_map[source] = SharedQuantizationSpec(source)


def _is_free(spec: Any) -> bool:
    """Return whether a spec has its own observer for an activation: not fixed, shared, derived or for weights."""
    return type(spec) is QuantizationSpec and spec.dtype == torch.int8 and spec.qscheme == torch.per_tensor_affine
