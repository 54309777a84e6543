"""`NeutronPartitioner`: decides which nodes the NPU runs, and gives the reason for each node.

It lowers each cluster without data and applies the same `check` as the compiler. Then it cuts the graph into partitions,
and lowers and checks each of them as a whole. Partitioning never edits the graph and draws no random numbers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.utils import tag_constant_data
from torch.export import ExportedProgram
from torch.fx import Node

from openneutron.board.cpu import PORTABLE, CpuCosts
from openneutron.errors import OptionError
from openneutron.executorch.compile_spec import from_specs
from openneutron.executorch.deliver.backend import NeutronBackend, ensure_only_backend
from openneutron.executorch.deliver.session import CompileSession, Content, Trial
from openneutron.executorch.fx import operator_name
from openneutron.executorch.lower import layer_calls
from openneutron.executorch.lower.encoding import Constants
from openneutron.executorch.lower.lowering import Lowered
from openneutron.executorch.operators import lowerings
from openneutron.executorch.partition.clusters import Cluster, examine, find_clusters
from openneutron.executorch.partition.delegation import CustomDelegationOptions
from openneutron.executorch.partition.excluded import Excluded
from openneutron.executorch.partition.levels import cut, split
from openneutron.executorch.partition.node_verdicts import node_verdicts
from openneutron.executorch.partition.passes.decompose_leftovers import decompose_leftovers
from openneutron.executorch.partition.passes.keep_layers_whole import keep_layers_whole
from openneutron.executorch.partition.passes.keep_order_between import keep_order_between
from openneutron.executorch.partition.passes.make_islands_contiguous import Copies, make_islands_contiguous
from openneutron.executorch.partition.passes.split_dequantize import split_dequantize
from openneutron.executorch.partition.states import kept_by
from openneutron.executorch.partition.trial_conversion import TrialConversions
from openneutron.executorch.partition.trial_lowering import Check, TrialLowering, TrialLowerings
from openneutron.executorch.place.placement import check_placement, compare_with_cpu
from openneutron.executorch.target_spec import NeutronTargetSpec
from openneutron.executorch.upstream.names import OpOverload, aten_operator
from openneutron.machine import targets
from openneutron.options import Options
from openneutron.report.model import NodeVerdict
from openneutron.verdict import Reason

WHERE = "NeutronPartitioner"


class NeutronPartitioner(Partitioner):
    """Partitions a quantized Edge program for the NPU. With nothing optional given it delegates as much as possible.

    `preserve_ops` are operators to keep from decomposition in addition to those that are kept anyway. One that would not be
    delegated is decomposed all the same, and so is a node of them for which `check_op_support` returns False.
    With `placement="fastest"` a partition that the CPU would run faster stays there (see `placement.py`); `cpu_costs` are
    those of the kernels that run it there. After lowering, `verdicts` says of each node which processor runs it and why,
    `copies` how much of a channels-last program is copied to contiguous order for the CPU, and `unmatched` which patterns of
    `operators_not_to_delegate` match no node. `session` carries results from the partitioner to the backend; without one
    the partitioner makes one for each program.

    Example:
        >>> partitioner = NeutronPartitioner(generate_neutron_compile_spec("imxrt700"))
        >>> edge = to_edge_transform_and_lower(exported, partitioner=[partitioner])
        >>> [(v.name, v.reason) for v in partitioner.verdicts if not v.delegated]
    """

    def __init__(
        self,
        compile_spec: Sequence[Any],
        neutron_target_spec: NeutronTargetSpec | None = None,
        custom_delegation_options: CustomDelegationOptions | None = None,
        post_quantization_state_dict: Mapping[str, torch.Tensor] | None = None,
        preserve_ops: Sequence[Any] | None = None,
        check_op_support: Callable[[Node], bool] | None = None,
        *,
        placement: str = "all",
        cpu_costs: CpuCosts = PORTABLE,
        session: CompileSession | None = None,
    ) -> None:
        super().__init__()
        # Callers go on with to_executorch(), which knows no quantize.out without this.
        import executorch.kernels.quantized  # noqa: F401

        self.options: Options = from_specs(compile_spec)
        if neutron_target_spec is not None and neutron_target_spec.name != self.options.target:
            raise OptionError(
                f"the target spec is for {neutron_target_spec.name}, the compile spec for {self.options.target}",
                where=WHERE,
            )
        if custom_delegation_options is not None and not isinstance(custom_delegation_options, CustomDelegationOptions):
            raise OptionError(f"custom_delegation_options is {custom_delegation_options!r}", where=WHERE)
        self.custom = custom_delegation_options or CustomDelegationOptions()
        self.conversions = TrialConversions(self.options)
        self.session = session or CompileSession()
        self.excluded = Excluded(self.options.operators_not_to_delegate)
        self._given: dict[str, torch.Tensor] = dict(post_quantization_state_dict or {})
        self._waiting: list[dict[str, torch.Tensor]] = []
        self._finished = False
        self._whole: dict[str, list[str]] = {}  # layers found to be delegable as one call: body → operators
        self._preserve = _check_preserved(preserve_ops or ())
        if check_op_support is not None and not callable(check_op_support):
            raise OptionError(
                f"check_op_support is {check_op_support!r}", where=WHERE, hint="give a function from a node to a bool"
            )
        self._check_op_support = check_op_support
        check_placement(placement, self.options, where=WHERE)
        self.placement = placement
        self.cpu_costs = cpu_costs
        self.verdicts: list[NodeVerdict] = []
        self.partitions: list[list[Cluster]] = []
        self.unmatched: tuple[str, ...] = ()
        self.copies = Copies(0, 0)
        ensure_only_backend()

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag the nodes of each partition; the program itself is not changed."""
        graph = exported_program.graph
        constants = Constants(exported_program, self._take_known(exported_program))
        trials = TrialLowerings(constants, self._check(), self.options)
        self.unmatched = self.excluded.unmatched_patterns(graph.nodes)
        clusters = find_clusters(graph)
        for cluster in clusters:
            self._examine(cluster, trials)
        found = self._fit(cut(graph, clusters), exported_program, trials)
        while found is None:
            found = self._fit(cut(graph, clusters), exported_program, trials)
        found = self._without_no_ops(found)
        if self.placement == "fastest":
            found = [fitted for fitted in found if self._is_worth_it(fitted)]
        keep_order_between([fitted.lowered for fitted in found])
        tags: dict[str, DelegationSpec] = {}
        borders: set[Node] = set()  # of buffers that a partition keeps
        first = self.session.first + len(self.partitions)
        for index, fitted in enumerate(found, start=first):
            tag = f"neutron_{index}"
            region = fitted.trial.region
            content = Content.of(region, constants)
            trial = Trial(content, self.options, fitted.lowered, fitted.trial.result)
            tags[tag] = DelegationSpec(NeutronBackend.__name__, self.session.add(index, trial))
            states = region.states
            borders.update(node for state in states for node in state.borders())
            for node in (*region.nodes, *(state.read for state in states)):
                node.meta["delegation_tag"] = tag
        partitions = [fitted.members for fitted in found]
        tag_constant_data(exported_program)
        self.partitions += partitions
        self.verdicts += node_verdicts(graph, clusters, partitions, first, borders, constants)
        self._finished = True
        return PartitionResult(tagged_exported_program=exported_program, partition_tags=tags)

    def ops_to_not_decompose(self, ep: ExportedProgram) -> tuple[list[OpOverload], Callable[[Node], bool] | None]:
        """Operators to keep whole; the filter is the predicate of delegation itself.

        Where every node of these operators is delegated no filter is needed, which saves ExecuTorch two retraces.

        `to_edge_transform_and_lower` asks again after partitioning, to verify the result. For callers of that function this
        is the only moment at which a partitioner sees the finished program, so `finish` runs here too. Our own pipeline
        calls `finish` itself and does not depend on the second question.
        """
        if self._finished:
            self.finish(ep)
        names = {operator_name(node) for node in ep.graph.nodes if self._asks_to_stay_whole(node)}
        if not names:
            return [], None
        nodes = [node for node in ep.graph.nodes if operator_name(node) in names]
        kept = self._find_delegable(ep, names)
        targets_ = list(dict.fromkeys(aten_operator(node.target) for node in nodes))
        return targets_, None if all(node in kept for node in nodes) else lambda node: node in kept

    def finish(self, program: ExportedProgram) -> None:
        """Decompose what was kept whole but stays on the CPU, and make it contiguous: stock kernels refuse mixed dim orders.

        This is the last step of lowering a partitioned program. A second call changes nothing.
        """
        decompose_leftovers(program.graph_module, self._may_be_whole)
        self.copies += make_islands_contiguous(program.graph_module)

    def transform_for_pre_decomposition(self, exported_program: ExportedProgram) -> ExportedProgram:
        """Remember the real tensors (`partition` sees none) and give every reader its own dequantize.

        ExecuTorch calls this for every method of a program and only then partitions them, in the same order.
        """
        if self._finished:
            self.session = CompileSession()
            self.verdicts, self.partitions, self._waiting, self._finished = [], [], [], False
            self.copies = Copies(0, 0)
        tensors = {**exported_program.state_dict, **exported_program.constants}
        self._waiting.append({name: value for name, value in tensors.items() if isinstance(value, torch.Tensor)})
        program = split_dequantize(exported_program)
        return keep_layers_whole(program, self._delegates_whole, self.session.bodies)

    def _keeps_layers(self) -> bool:
        """Whether no option looks at the operators inside a layer."""
        asked = self.options.operators_not_to_delegate or self._preserve or self._check_op_support is not None
        return not asked and self.placement == "all" and self.options.converter == "open"

    def _delegates_whole(self, program: ExportedProgram, call: Node) -> bool:
        """Whether a layer as one call would be delegated: it cannot be cut where only a part fits."""
        if not self._keeps_layers():
            return False
        trials = TrialLowerings(Constants(program, self._given), self._check(), self.options)
        cluster = next(one for one in find_clusters(program.graph) if call in one.nodes)
        self._examine(cluster, trials)
        trial = trials.lower(cluster.nodes)
        accepted = cluster.accepted and trial.lowered is not None and self.conversions.outcome(trial).whole
        if accepted and cluster.cores == [call]:
            self._whole[str(call.args[1])] = cluster.operators
        return accepted

    def _take_known(self, program: ExportedProgram) -> dict[str, torch.Tensor]:
        """The real tensors of a program, found by name and shape.

        Names repeat between methods, so this takes the first method that has most of the names and contradicts no shape.
        ExecuTorch adds tensors of its own, one for each number between operators, so some names may be unknown.
        """
        wanted = {name: value.shape for name, value in program.state_dict.items()}
        unknown = {
            position: len(wanted.keys() - known.keys())
            for position, known in enumerate(self._waiting)
            if all(known[name].shape == shape for name, shape in wanted.items() if name in known)
        }
        if not unknown:
            return self._given
        return {**self._given, **self._waiting.pop(min(unknown, key=unknown.__getitem__))}

    def _asks_to_stay_whole(self, node: Node) -> bool:
        rule = lowerings().get(operator_name(node))
        if rule is None or not self._may_be_whole(node):
            return False
        return operator_name(node) in self._preserve or (rule.preserve is not None and rule.preserve(node))

    def _may_be_whole(self, node: Node) -> bool:
        """Return whether the operator is kept whole somewhere: ExecuTorch then keeps all nodes of it that it makes later."""
        name = operator_name(node)
        rule = lowerings().get(name)
        if rule is None or self.excluded.may_name(name) or self._is_vetoed(node):
            return False
        return name in self._preserve or rule.preserve is not None

    def _is_vetoed(self, node: Node) -> bool:
        """Whether the user asked to preserve this operator, but not this node of it."""
        if self._check_op_support is None or operator_name(node) not in self._preserve:
            return False
        return not self._check_op_support(node)

    def _find_delegable(self, ep: ExportedProgram, names: set[str]) -> set[Node]:
        """The nodes of these operators whose clusters would be delegated."""
        trials = TrialLowerings(Constants(ep, self._given), self._check(), self.options)
        kept: set[Node] = set()
        for cluster in find_clusters(ep.graph):
            found = [node for node in cluster.nodes if operator_name(node) in names and not self._is_vetoed(node)]
            if found:
                self._examine(cluster, trials)
                kept.update(found if cluster.accepted else ())
        return kept

    def _examine(self, cluster: Cluster, trials: TrialLowerings) -> None:
        for node in cluster.cores:
            pattern = self.excluded.pattern(node)
            if pattern:
                message = f"operators_not_to_delegate names it ({pattern})"
                cluster.refuse(node, Reason("excluded", message, node.name, "remove it from the list"))
                return
        known = [
            self._whole.get(str(node.args[1])) for node in cluster.cores if operator_name(node) == layer_calls.OPERATOR
        ]
        if len(cluster.cores) == 1 and known and known[0] is not None:
            cluster.operators = known[0]  # lowered before; its partition is lowered and checked as a whole all the same
            return
        examine(cluster, trials)

    def _fit(
        self, partitions: list[list[Cluster]], program: ExportedProgram, trials: TrialLowerings
    ) -> list[_Fitted] | None:
        """Each partition as a whole, or in pieces that fit the memory; None when clusters were refused on the way.

        Only a whole partition shows which transposes it needs, so checking clusters alone would not be enough.
        """
        waiting, done = list(partitions), []
        order = {node: index for index, node in enumerate(program.graph.nodes)}
        while waiting:
            members = waiting.pop(0)
            cluster_of = {node: cluster for cluster in members for node in cluster.nodes}
            trial = self._with_states(cluster_of, program, order, trials)
            if trial is None:
                trial = trials.lower(sorted(cluster_of, key=order.__getitem__))
            lowered = trial.lowered
            problems = [trial.problem] if trial.problem is not None else []
            if lowered is not None:
                outcome = self.conversions.outcome(trial)
                problems = [(lowered.nodes[at], reason) for at, reason in outcome.left]
                if outcome.whole:
                    done.append(_Fitted(members, trial, lowered))
                    continue
                if not problems:
                    pieces = split(members, _last_graphs(lowered, outcome.graphs))
                    if len(pieces) > 1:
                        waiting = [*pieces, *waiting]
                        continue
                    problems = [(lowered.nodes[-1], self.conversions.shortage(trial))]
            for node, reason in problems:
                cluster_of[node].refuse(node, reason)
            return None
        return done

    def _with_states(
        self, inside: Collection[Node], program: ExportedProgram, order: Mapping[Node, int], trials: TrialLowerings
    ) -> TrialLowering | None:
        """A partition that keeps its buffers itself; None where it has none, or does not become one NeutronGraph with them.

        What NXP's converter does with variables is not public.
        """
        states = kept_by(program, inside, program.graph.output_node().args[0])  # type: ignore[arg-type]
        if not states or self.options.converter == "nxp":
            return None
        nodes = sorted({*inside, *(node for state in states for node in state.borders())}, key=order.__getitem__)
        trial = trials.lower(nodes, states)
        return trial if trial.lowered is not None and self.conversions.outcome(trial).whole else None

    def _is_worth_it(self, fitted: _Fitted) -> bool:
        """Whether a partition is faster on the NPU; refuses its clusters when not."""
        nodes = [node for cluster in fitted.members for node in cluster.nodes]
        cycles = self.conversions.result(fitted.trial).report.totals.cycles
        costs = compare_with_cpu(nodes, fitted.lowered, cycles, self.options.target, self.cpu_costs)
        if not costs.worth:
            for cluster in fitted.members:
                node = cluster.first
                hint = 'placement="all" delegates it all the same'
                cluster.refuse(node, Reason("slower_on_npu", costs.reason, node.name, hint))
        return costs.worth

    def _without_no_ops(self, partitions: list[_Fitted]) -> list[_Fitted]:
        if self.custom.allow_no_op_partitions:
            return partitions
        kept = []
        for fitted in partitions:
            if not all(cluster.no_op for cluster in fitted.members):
                kept.append(fitted)
                continue
            for cluster in fitted.members:
                node = cluster.first
                message, hint = (
                    "its partition would compute nothing",
                    "CustomDelegationOptions(allow_no_op_partitions=True)",
                )
                cluster.refuse(node, Reason("no_op_partition", message, node.name, hint))
        return kept

    def _check(self) -> Check:
        if self.options.converter == "nxp":
            from openneutron.nxp.limits import check as check_nxp

            return lambda signature: check_nxp(signature, self.options.target)
        from openneutron.compiler.kernels import check

        target = targets.load(self.options.target)
        return lambda signature: check(signature, target, streams=True)


@dataclasses.dataclass(frozen=True)
class _Fitted:
    """A partition that becomes one NeutronGraph, and its trial, whose lowering is `lowered`."""

    members: list[Cluster]
    trial: TrialLowering
    lowered: Lowered


def _last_graphs(lowered: Lowered, graphs: list[int]) -> dict[Node, int]:
    """Node → the last of the graphs that its operators went into."""
    found: dict[Node, int] = {}
    for node, number in zip(lowered.nodes, graphs, strict=True):
        found[node] = max(found.get(node, 0), number)
    return found


def _check_preserved(operators: Sequence[Any]) -> frozenset[str]:
    for operator in operators:
        if not isinstance(operator, OpOverload):
            raise OptionError(
                f"preserve_ops contains {operator!r}", where=WHERE,
                hint="give operators such as torch.ops.aten.hardswish.default",
            )  # fmt: skip
    return frozenset(str(operator) for operator in operators)
