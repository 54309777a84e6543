"""`NeutronQuantizer`: dispatches annotation to the operator files."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from torch.fx import GraphModule, Node
from torchao.quantization.pt2e.quantizer import Quantizer

from openneutron.errors import OptionError
from openneutron.executorch.fx import keep_float, module_path, module_types, operator_name
from openneutron.executorch.lower.ops import annotation_rules
from openneutron.executorch.quantize.annotator import Annotator, share_roles
from openneutron.executorch.quantize.passes import prepare_for_annotation
from openneutron.executorch.quantize.specs import Specs

if TYPE_CHECKING:
    from openneutron.executorch.target_spec import NeutronTargetSpec


class NeutronQuantizer(Quantizer):
    """Static INT8: activations affine per tensor, weights symmetric per tensor or, with `per_channel`, per channel.

    `observer` (histogram, minmax, moving_average, percentile) finds activation ranges in post-training quantization.
    `exclude` leaves nodes in float: glob patterns of node names, operators ("aten.add.Tensor"), module paths
    ("features.3", "head.*") or module classes ("torch.nn.modules.linear.Linear", "Linear").

    Calibration is exact to the bit only at a fixed number of threads (`torch.set_num_threads(1)`): the histogram's sums
    depend on it.

    Example:
        >>> prepared = prepare_pt2e(exported.module(), NeutronQuantizer(per_channel=True))
    """

    def __init__(
        self,
        neutron_target_spec: NeutronTargetSpec | None = None,
        is_qat: bool = False,
        *,
        per_channel: bool = False,
        observer: str = "histogram",
        exclude: Sequence[str] = (),
    ) -> None:
        super().__init__()
        if isinstance(exclude, str):
            raise OptionError(f"exclude is the string {exclude!r}", where="NeutronQuantizer", hint="give a list")
        self.neutron_target_spec = neutron_target_spec
        self.is_qat = is_qat
        self.exclude = tuple(exclude)
        self.specs = Specs(is_qat, per_channel, observer)

    def transform_for_annotation(self, model: GraphModule) -> GraphModule:
        """Rewrite the ATen graph in place so that everything inside can be quantized."""
        return prepare_for_annotation(model, is_qat=self.is_qat)

    def annotate(self, model: GraphModule) -> GraphModule:
        """Annotate every node whose operator has a file; leave what another quantizer annotated."""
        annotator = Annotator(self.specs, self.excludes)
        rules = annotation_rules()
        for node in model.graph.nodes:
            if annotator.is_annotated(node):
                continue
            rule = rules.get(operator_name(node))
            if self.excludes(node):
                keep_float(node, True)
            elif rule is not None:
                keep_float(node, False)
                rule.annotate(node, annotator)
        share_roles(model)
        return model

    def validate(self, model: GraphModule) -> None:
        """Nothing to refuse here: what cannot be delegated is named by the partitioner."""

    def excludes(self, node: Node) -> bool:
        """Whether the user asked to leave this node in float."""
        if not self.exclude:
            return False
        kinds = module_types(node)
        names = {
            node.name,
            operator_name(node),
            module_path(node),
            *kinds,
            *(kind.rpartition(".")[2] for kind in kinds),
        }
        return any(fnmatchcase(name, pattern) for pattern in self.exclude for name in names if name)
