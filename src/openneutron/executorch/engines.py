"""Engines: which processors a recipe by name uses, and what that means for quantizing and lowering.

`openneutron.compile` and ExecuTorch's export recipes are both made from these.

Example:
    >>> engines = engines_of("imxrt700cm")
    >>> engines.quantizer(Choices(observer="minmax"))
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from torchao.quantization.pt2e.quantizer import ComposableQuantizer, Quantizer

from openneutron.board.cpu import CORTEX_M as CORTEX_M_COSTS
from openneutron.board.cpu import PORTABLE as PORTABLE_COSTS
from openneutron.errors import OptionError
from openneutron.executorch.compile_spec import to_specs
from openneutron.executorch.deliver.session import CompileSession
from openneutron.executorch.fx import GETITEM, debug_handles, layer_of, operator_name, source_line
from openneutron.executorch.partition.partitioner import NeutronPartitioner
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.executorch.quantize.choices import Choices
from openneutron.options import Options
from openneutron.report.model import NodeVerdict

if TYPE_CHECKING:
    from openneutron.executorch.cortex_m.claim import Claim
    from openneutron.executorch.cortex_m.steps import CortexMPasses, PlaceLeftovers

NEUTRON, CORTEX_M, PORTABLE = "neutron", "cortex_m", "portable"


@dataclass(frozen=True)
class Engines:
    """A recipe's engines; all other nodes run in ExecuTorch's portable kernels. `cpu` is the Cortex-M core."""

    name: str
    neutron: bool
    cortex_m: bool
    targets: tuple[str, ...] = ()
    cpu: str = "cortex-m33"

    def check_target(self, target: str) -> None:
        """Refuse a target that the recipe is not for."""
        if self.targets and target not in self.targets:
            raise OptionError(
                f"recipe {self.name} is for {', '.join(self.targets)}, the target is {target}",
                hint='take recipe="neutron", which is for every target',
            )

    def quantizers(self, chosen: Choices, *, is_qat: bool = False) -> list[Quantizer]:
        """The quantizers in the order in which they annotate, two where two engines share the program."""
        neutron = NeutronQuantizer.of(chosen, is_qat=is_qat)
        if not self.cortex_m:
            return [neutron]
        if chosen.per_channel:
            neutron.specs = dataclasses.replace(neutron.specs, per_channel=None)  # Cortex-M's linear takes one scale
        from openneutron.executorch.cortex_m.backend_parts import cortex_m_backend
        from openneutron.executorch.cortex_m.leftovers import LeftoverQuantizer

        if not self.neutron:
            if is_qat:
                raise OptionError("recipe cortex_m does not train", hint='take "neutron" or "imxrt700cm"')
            chosen.refuse_methods("recipe cortex_m has a quantizer of its own", 'take "neutron" or "imxrt700cm"')
            return [cortex_m_backend(where=f"recipe {self.name}").quantizer(use_explicit_layout=True)]
        cortex_m_backend(where=f"recipe {self.name}")
        return [neutron, LeftoverQuantizer(neutron.excludes, is_qat=is_qat)]

    def quantizer(self, chosen: Choices, *, is_qat: bool = False) -> Quantizer:
        """The quantizers as one."""
        found = self.quantizers(chosen, is_qat=is_qat)
        return found[0] if len(found) == 1 else ComposableQuantizer(found)

    def partitioner(
        self, spec: Options, placement: str, session: CompileSession | None = None
    ) -> NeutronPartitioner | None:
        """The NPU's partitioner, None without an NPU."""
        if not self.neutron:
            return None
        costs = CORTEX_M_COSTS if self.cortex_m else PORTABLE_COSTS
        return NeutronPartitioner(to_specs(spec), placement=placement, cpu_costs=costs, session=session)

    def compile_config(self) -> Any:
        """How to lower to Edge; None for ExecuTorch's defaults."""
        if not self.cortex_m:
            return None
        from openneutron.executorch.cortex_m.passes import edge_compile_config

        return edge_compile_config(preserve=not self.neutron)

    def leftover_step(self, cpu: str = "") -> CortexMPasses | PlaceLeftovers | None:
        """The step behind partitioning that rewrites what is left for Cortex-M core `cpu`; None without one."""
        if not self.cortex_m:
            return None
        from openneutron.executorch.cortex_m.backend_parts import cortex_m_backend, target_config
        from openneutron.executorch.cortex_m.steps import CortexMPasses, PlaceLeftovers

        target_config(cortex_m_backend(where=f"recipe {self.name}"), cpu or self.cpu)  # says which cores there are
        return PlaceLeftovers(cpu or self.cpu) if self.neutron else CortexMPasses(cpu or self.cpu)

    def place_leftovers(self, manager: Any, verdicts: Sequence[NodeVerdict]) -> tuple[NodeVerdict, ...]:
        """Rewrite what is left for Cortex-M, in place; returns the verdicts with the engine of each node."""
        step = self.leftover_step()
        if step is None:
            return tuple(dataclasses.replace(v, engine=NEUTRON if v.delegated else PORTABLE) for v in verdicts)
        step(manager)
        if not self.neutron:
            return _by_operator(manager.exported_program().graph)
        claims: dict[str, Claim] = getattr(step, "claims", {})
        gone = {name for name, claim in claims.items() if claim.folded}
        return tuple(_with_engine(verdict, claims) for verdict in verdicts if verdict.name not in gone)


RECIPES: Final = {
    one.name: one
    for one in (
        Engines("neutron", neutron=True, cortex_m=False),
        Engines("cortex_m", neutron=False, cortex_m=True),
        Engines("imxrt700cm", neutron=True, cortex_m=True, targets=("imxrt700",)),
    )
}


def engines_of(recipe: str) -> Engines:
    """The engines of a recipe; an `OptionError` lists the known ones."""
    if recipe not in RECIPES:
        raise OptionError(f"recipe is {recipe!r}", hint=f"one of {', '.join(RECIPES)}")
    return RECIPES[recipe]


def _with_engine(verdict: NodeVerdict, claims: dict[str, Claim]) -> NodeVerdict:
    if verdict.delegated:
        return dataclasses.replace(verdict, engine=NEUTRON)
    claim = claims.get(verdict.name)
    if claim is None or claim.engine == PORTABLE:
        extra = f"; {claim.reason}" if claim is not None and claim.reason else ""
        return dataclasses.replace(verdict, engine=PORTABLE, reason=verdict.reason + extra)
    return dataclasses.replace(verdict, engine=CORTEX_M)


def _by_operator(graph: Any) -> tuple[NodeVerdict, ...]:
    """Verdicts of a program without an NPU, read off its operators."""
    found = []
    for node in graph.nodes:
        name = operator_name(node)
        if node.op != "call_function" or name == GETITEM or "." not in name:
            continue
        own = name.startswith("cortex_m.")
        reason = "" if own else "Cortex-M has no operator for it"
        found.append(
            NodeVerdict(
                name=node.name, operator=name, delegated=False, reason=reason, code="" if own else "no_cortex_m",
                source=source_line(node), debug_handle=(debug_handles(node) or (-1,))[0],
                engine=CORTEX_M if own else PORTABLE, module=layer_of(node),
            )
        )  # fmt: skip
    return tuple(found)
