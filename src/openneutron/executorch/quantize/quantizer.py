"""`NeutronQuantizer`: calls the annotation rules of the operator files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e.quantizer import Quantizer

from openneutron.errors import OptionError
from openneutron.executorch.fx import FloatReason, keep_float, layer_of, module_path, module_types, operator_name
from openneutron.executorch.operators import annotation_rules
from openneutron.executorch.quantize.annotator import Annotator, share_roles
from openneutron.executorch.quantize.check.keep_float import why_float
from openneutron.executorch.quantize.check.rewrites import RewriteCheck
from openneutron.executorch.quantize.choices import (
    GROUP_SIZE,
    PERCENTILE,
    Choices,
    LayerChoice,
    check_group_size,
    layer_choice,
)
from openneutron.executorch.quantize.passes import passes_for, run_passes
from openneutron.executorch.quantize.passes._insert import replaced_names
from openneutron.executorch.quantize.passes.compute_masks import compute_masks
from openneutron.executorch.quantize.passes.decompose.decompose_wide import decompose_wide
from openneutron.executorch.quantize.passes.decompose.refine_roots import refine_roots
from openneutron.executorch.quantize.passes.mask_probabilities import mask_probabilities
from openneutron.executorch.quantize.passes.replace.replace_magnitude import replace_magnitude
from openneutron.executorch.quantize.passes.replace.replace_sum import replace_sum
from openneutron.executorch.quantize.passes.separate_ranges import is_marked_wide
from openneutron.executorch.quantize.precision import Precision, PrecisionLike, Precisions
from openneutron.executorch.quantize.specs import Specs

if TYPE_CHECKING:
    from openneutron.executorch.target_spec import NeutronTargetSpec


_SPECS = ("per_channel", "observer", "percentile", "weights", "group_size")  # what a layer can change


class NeutronQuantizer(Quantizer):
    """Static quantization: INT8 weights, symmetric; activations per tensor.

    Weights have a scale for each output channel with `per_channel` True, one for all with False; by default those of
    convolutions have one for each channel, those of other layers one for all.

    `activations` are "int8" (affine) or "int16" (symmetric, LiteRT's 16x8 scheme); `precision` says otherwise for some, by
    the same patterns as `exclude`, as `set_module_name`, `set_module_type` and `set_node` do. Values are requantized where
    the two meet; operators that LiteRT has for INT8 alone stay INT8.

    `weights` "int4" gives linear layers, products with a constant matrix and 1x1 convolutions weights of 4 bits, with a
    scale for each `group_size` inputs of a channel (16, 32, 64 or 128; 0: one for all); others keep 8 bits.

    `observer` (histogram, minmax, moving_average, percentile, mse) finds activation ranges in post-training quantization.
    `layers` change precision, observer and scales of weights for some: `LayerChoice`s, or mappings with their fields.
    `exclude` leaves nodes in float: glob patterns of node names, operators ("aten.add.Tensor"), module paths
    ("features.3", "head.*") or module classes ("torch.nn.modules.linear.Linear", "Linear").

    Calibration is exact to the bit only at a fixed number of threads (`torch.set_num_threads(1)`): the histogram's sums
    depend on it.

    Example:
        >>> prepared = prepare_pt2e(exported.module(), NeutronQuantizer())
    """

    def __init__(
        self,
        neutron_target_spec: NeutronTargetSpec | None = None,
        is_qat: bool = False,
        *,
        per_channel: bool | None = None,
        observer: str = "histogram",
        exclude: Sequence[str] = (),
        activations: str = "int8",
        precision: PrecisionLike = "",
        percentile: float = PERCENTILE,
        layers: Sequence[LayerChoice | Mapping[str, Any]] = (),
        weights: str = "int8",
        group_size: int = GROUP_SIZE,
    ) -> None:
        super().__init__()
        if isinstance(exclude, str):
            raise OptionError(f"exclude is the string {exclude!r}", where="NeutronQuantizer", hint="give a list")
        self.neutron_target_spec = neutron_target_spec
        self.is_qat = is_qat
        self.check: RewriteCheck | None = None  # for the next module that is transformed
        self.exclude = tuple(exclude)
        self._matched: set[tuple[str, str]] = set()  # options, and patterns of them
        check_group_size(group_size, "NeutronQuantizer")
        self.specs = Specs(is_qat, per_channel, observer, percentile, weights, group_size)
        self.precisions = Precisions.of(precision, activations)
        self.layers = tuple(
            one if isinstance(one, LayerChoice) else layer_choice(one, where=f"layer {at}")
            for at, one in enumerate(layers, 1)
        )
        for one in self.layers:
            if one.activations is not None:
                self.precisions.choose(one.name, one.activations)

    @classmethod
    def of(cls, chosen: Choices, *, is_qat: bool = False) -> NeutronQuantizer:
        """Make the quantizer for the choices of a compile.

        Example:
            >>> quantizer = NeutronQuantizer.of(Choices.of({"quantization": "q.toml"}))
        """
        return cls(
            is_qat=is_qat, per_channel=chosen.per_channel, observer=chosen.observer, exclude=chosen.exclude,
            activations=chosen.activations, precision=chosen.precision, percentile=chosen.percentile,
            layers=chosen.layers, weights=chosen.weights, group_size=chosen.group_size,
        )  # fmt: skip

    def set_module_name(self, name: str, precision: str) -> NeutronQuantizer:
        """Choose "int8" or "int16" for a module, by its path, and everything in it.

        Example:
            >>> quantizer = NeutronQuantizer().set_module_name("head", int16)
        """
        self.precisions.choose(name, precision)
        return self

    def set_module_type(self, kind: type | str, precision: str) -> NeutronQuantizer:
        """Choose for all modules of a class, given as such or by name."""
        name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
        self.precisions.choose(name, precision)
        return self

    def set_node(self, name: str, precision: str) -> NeutronQuantizer:
        """Choose for one node of the exported graph, or for an operator such as "aten.softmax.int"."""
        self.precisions.choose(name, precision)
        return self

    def transform_for_annotation(self, model: GraphModule) -> GraphModule:
        """Rewrite the ATen graph in place so that all supported operators can be quantized."""
        passes = passes_for(
            is_qat=self.is_qat, wide=[self._decompose_wide, self._replace_magnitude],
            written_out=[self._replace_sum, self._refine_roots, self._mask_probabilities, self._compute_masks],
        )  # fmt: skip
        check, self.check = self.check, None
        if check is None or check.model is not model:
            return run_passes(passes, model)
        check.is_wide = self._is_wide
        check.run(passes)
        check.settle()
        return model

    def _decompose_wide(self, model: GraphModule) -> int:
        return decompose_wide(model, self._is_wide)

    def _replace_magnitude(self, model: GraphModule) -> int:
        return replace_magnitude(model, self._is_wide)

    def _replace_sum(self, model: GraphModule) -> int:
        return replace_sum(model, self._is_wide)

    def _refine_roots(self, model: GraphModule) -> int:
        return refine_roots(model, self._is_wide)

    def _mask_probabilities(self, model: GraphModule) -> int:
        return mask_probabilities(model, self._is_wide)

    def _compute_masks(self, model: GraphModule) -> int:
        return compute_masks(model, self._is_wide)

    def annotate(self, model: GraphModule) -> GraphModule:
        """Annotate every node whose operator has a file; nodes that another quantizer annotated are skipped."""
        annotator = Annotator(self.specs, self.excludes)
        rules = annotation_rules()
        patterns = self._patterns()
        for node in model.graph.nodes:
            self._note_matches(node, patterns)
            if annotator.is_annotated(node):
                continue
            rule = rules.get(operator_name(node))
            lossy = FloatReason.ASKED if self.excludes(node) else why_float(node)
            if lossy is not None:
                keep_float(node, lossy)
            elif rule is not None:
                keep_float(node, None)
                chosen = self.precisions.of_names(_names(node))
                marked = chosen is None and is_marked_wide(node)
                annotator.specs = self._specs(node)
                wide = rule.wide and (marked or self._is_wide(node))
                annotator.begin(
                    torch.int16 if wide else torch.int8, chosen=marked or chosen is not None, wide=rule.wide
                )
                rule.annotate(node, annotator)
        share_roles(model)
        return model

    def _is_wide(self, node: Node) -> bool:
        """Return whether 16-bit activations were chosen for the node, or for everything."""
        chosen = self.precisions.of_names(_names(node)) or self.precisions.default
        return chosen is Precision.INT16 and not self.excludes(node)

    def validate(self, model: GraphModule) -> None:
        """Do nothing: the partitioner names what cannot be delegated."""

    def excludes(self, node: Node) -> bool:
        """Return whether the user excluded this node from quantization."""
        if not self.exclude and not self.layers:
            return False
        names = _names(node)
        return any(fnmatchcase(name, pattern) for pattern in self.exclude for name in names) or any(
            one.exclude and one.matches(names) for one in self.layers
        )

    @property
    def unmatched(self) -> Mapping[str, Sequence[str]]:
        """The patterns that matched no node of the models annotated so far, by the option that holds them.

        An operator's own name is none of them in settings of layers: one file serves networks with and without it.
        """
        found: dict[str, list[str]] = {}
        operators = annotation_rules()
        for option, patterns in self._patterns().items():
            left = [one for one in patterns if (option, one) not in self._matched]
            found[option] = [one for one in left if option != "[[layer]]" or one not in operators]
        return found

    def _patterns(self) -> dict[str, list[str]]:
        """Return all patterns of names, by the option that holds them."""
        layers = [one.name for one in self.layers]
        chosen = [pattern for pattern, _ in self.precisions.rules if pattern not in layers]
        return {
            option: list(dict.fromkeys(patterns))
            for option, patterns in (("exclude", self.exclude), ("precision", chosen), ("[[layer]]", layers))
        }

    def _note_matches(self, node: Node, patterns: Mapping[str, Sequence[str]]) -> None:
        """Record which patterns match a node; those of layers also match all that lies in a module."""
        names = _names(node) if any(patterns.values()) else set()
        for option, given in patterns.items():
            inside = "" if option == "exclude" else ".*"
            self._matched.update(
                (option, one)
                for one in given
                if any(fnmatchcase(name, one) or (inside and fnmatchcase(name, one + inside)) for name in names)
            )

    def has_four_bits(self, node: Node) -> bool:
        """Return whether the weights of a node were chosen to have 4 bits."""
        return self._specs(node).weights == "int4"

    def _specs(self, node: Node) -> Specs:
        """Return the specs of a node: those of the model with the settings of matching layers."""
        if not self.layers:
            return self.specs
        names = _names(node)
        changes: dict[str, Any] = {}
        for one in self.layers:
            if one.matches(names):
                given = {name: getattr(one, name) for name in _SPECS}
                changes |= {name: value for name, value in given.items() if value is not None}
        return replace(self.specs, **changes) if changes else self.specs


def _names(node: Node) -> set[str]:
    """Return every name a pattern can match: the node's, its ONNX node's, its operator's, its module's path and classes.

    A node that a rewrite made has the name of the one it replaces too.
    """
    kinds = module_types(node)
    names = {node.name, operator_name(node), layer_of(node), module_path(node), *kinds, *replaced_names(node)}
    return {name for name in (*names, *(kind.rpartition(".")[2] for kind in kinds)) if name}
