"""`NeutronPartitioner`: decides what the NPU runs, and says of each node why or why not.

It lowers each cluster without data and asks the same `check` as the compiler, then cuts, then lowers and checks each
partition whole. The graph is never edited and no random number is drawn.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.utils import tag_constant_data
from torch.export import ExportedProgram
from torch.fx import Node

from openneutron.board.cpu import PORTABLE, CpuCosts
from openneutron.errors import OptionError
from openneutron.executorch.compile_spec import from_specs, to_specs
from openneutron.executorch.deliver import conversion, tried
from openneutron.executorch.deliver.backend import NeutronBackend, ensure_only_backend
from openneutron.executorch.fx import operator_name
from openneutron.executorch.lower import whole
from openneutron.executorch.lower.encoding import Constants
from openneutron.executorch.lower.lowering import Lowered, Region
from openneutron.executorch.operators import lowerings
from openneutron.executorch.partition.attempts import Attempt, Attempts, Check
from openneutron.executorch.partition.clusters import Cluster, examine, find_clusters
from openneutron.executorch.partition.delegation import CustomDelegationOptions
from openneutron.executorch.partition.excluded import Excluded
from openneutron.executorch.partition.levels import cut, split
from openneutron.executorch.partition.outcome import verdicts_of
from openneutron.executorch.partition.passes.decompose_leftovers import decompose_leftovers
from openneutron.executorch.partition.passes.keep_layers_whole import keep_layers_whole
from openneutron.executorch.partition.passes.keep_order_between import keep_order_between
from openneutron.executorch.partition.passes.make_islands_contiguous import Copies, make_islands_contiguous
from openneutron.executorch.partition.passes.split_dequantize import split_dequantize
from openneutron.executorch.partition.states import kept_by
from openneutron.executorch.partition.trial import Trials
from openneutron.executorch.place.placement import check_placement, weigh
from openneutron.executorch.target_spec import NeutronTargetSpec
from openneutron.machine import targets
from openneutron.options import Options
from openneutron.report.model import Node as Verdict
from openneutron.verdict import Reason

WHERE = "NeutronPartitioner"


class NeutronPartitioner(Partitioner):
    """Partitions a quantized Edge program for the NPU. With nothing optional given it delegates as much as possible.

    `preserve_ops` are operators to keep from decomposition in addition to those we keep anyway; one that would not be
    delegated decomposes all the same, and so does a node of them for which `check_op_support` says False.
    With `placement="fastest"` a partition that the CPU would run faster stays there (see `placement.py`); `cpu_costs` are
    those of the kernels that run it there. After lowering `verdicts` tells of each
    node who runs it and why, and `copies` how much of a channels-last program is copied to contiguous order for the CPU.

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
    ) -> None:
        super().__init__()
        # Whoever partitions for Neutron calls to_executorch() next, which knows no quantize.out without this.
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
        self.trials = Trials(self.options)
        self.excluded = Excluded(self.options.operators_not_to_delegate)
        self._given: dict[str, torch.Tensor] = dict(post_quantization_state_dict or {})
        self._waiting: list[dict[str, torch.Tensor]] = []
        self._finished = False
        self._whole: dict[str, list[str]] = {}  # layers found to be delegable as one call: body → operators
        self._preserve = _preserved(preserve_ops or ())
        if check_op_support is not None and not callable(check_op_support):
            raise OptionError(
                f"check_op_support is {check_op_support!r}", where=WHERE, hint="give a function from a node to a bool"
            )
        self._check_op_support = check_op_support
        check_placement(placement, self.options, where=WHERE)
        self.placement = placement
        self.cpu_costs = cpu_costs
        self.verdicts: list[Verdict] = []
        self.partitions: list[list[Cluster]] = []
        self.copies = Copies(0, 0)
        ensure_only_backend()

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag the nodes of each partition; the program itself is not changed."""
        graph = exported_program.graph
        constants = Constants(exported_program, self._take_known(exported_program))
        attempts = Attempts(constants, self._check(), self.options)
        clusters = find_clusters(graph)
        for cluster in clusters:
            self._examine(cluster, attempts)
        found = self._fitting(cut(graph, clusters), exported_program, attempts)
        while found is None:
            found = self._fitting(cut(graph, clusters), exported_program, attempts)
        found = self._without_no_ops(found)
        if self.placement == "fastest":
            found = [fitted for fitted in found if self._worth(fitted)]
        keep_order_between([fitted.lowered for fitted in found])
        for fitted in found:
            tried.remember(fitted.region, constants, self.options, fitted.lowered)
        tags: dict[str, DelegationSpec] = {}
        borders: set[Node] = set()  # of buffers that a partition keeps
        first = len(self.partitions)
        for index, fitted in enumerate(found, start=first):
            tag = f"neutron_{index}"
            specs = to_specs(_numbered(self.options, index))
            tags[tag] = DelegationSpec(NeutronBackend.__name__, specs)
            states = fitted.region.states
            borders.update(node for state in states for node in state.borders())
            for node in (*fitted.region.nodes, *(state.read for state in states)):
                node.meta["delegation_tag"] = tag
        partitions = [fitted.members for fitted in found]
        tag_constant_data(exported_program)
        self.partitions += partitions
        self.verdicts += verdicts_of(graph, clusters, partitions, first, borders)
        self._finished = True
        return PartitionResult(tagged_exported_program=exported_program, partition_tags=tags)

    def ops_to_not_decompose(
        self, ep: ExportedProgram
    ) -> tuple[list[torch._ops.OpOverload], Callable[[Node], bool] | None]:
        """Operators to keep whole; the filter is the predicate of delegation itself.

        Where every node of these operators is delegated no filter is needed, which saves ExecuTorch two retraces.
        It asks once more when everything is lowered. That is the only moment at which a partitioner sees the finished
        program. So what was kept whole and stays on the CPU all the same, for memory or speed, is decomposed then, and made
        contiguous: stock kernels refuse mixed dim orders.
        """
        if self._finished:
            decompose_leftovers(ep.graph_module, self._asks_to_stay_whole)
            self.copies += make_islands_contiguous(ep.graph_module)
            tried.forget()
        names = {operator_name(node) for node in ep.graph.nodes if self._asks_to_stay_whole(node)}
        if not names:
            return [], None
        nodes = [node for node in ep.graph.nodes if operator_name(node) in names]
        kept = self._delegable(ep, names)
        targets_ = list(dict.fromkeys(_overload(node) for node in nodes))
        return targets_, None if all(node in kept for node in nodes) else lambda node: node in kept

    def transform_for_pre_decomposition(self, exported_program: ExportedProgram) -> ExportedProgram:
        """Remember the real tensors (`partition` sees none) and give every reader its own dequantize.

        ExecuTorch calls this for every method of a program and only then partitions them, in the same order.
        """
        if not self._waiting or self._finished:
            conversion.forget()
            tried.forget()
        if self._finished:
            self.verdicts, self.partitions, self._waiting, self._finished = [], [], [], False
            self.copies = Copies(0, 0)
        tensors = {**exported_program.state_dict, **exported_program.constants}
        self._waiting.append({name: value for name, value in tensors.items() if isinstance(value, torch.Tensor)})
        program = split_dequantize(exported_program)
        return keep_layers_whole(program, self._delegates_whole)

    def _keeps_layers(self) -> bool:
        """Whether nothing was asked for that looks at the operators inside a layer."""
        asked = self.options.operators_not_to_delegate or self._preserve or self._check_op_support is not None
        return not asked and self.placement == "all" and self.options.converter == "open"

    def _delegates_whole(self, program: ExportedProgram, call: Node) -> bool:
        """Whether a layer as one call would be delegated: it cannot be cut where only a part fits."""
        if not self._keeps_layers():
            return False
        attempts = Attempts(Constants(program, self._given), self._check(), self.options)
        cluster = next(one for one in find_clusters(program.graph) if call in one.nodes)
        self._examine(cluster, attempts)
        lowered = attempts.lower(cluster.nodes).lowered if cluster.accepted else None
        accepted = lowered is not None and self.trials.outcome(lowered).whole
        if accepted:
            body = str(call.args[1])
            weakref.finalize(self, whole.forget, body)
            if cluster.cores == [call]:
                self._whole[body] = cluster.operators
        return accepted

    def _take_known(self, program: ExportedProgram) -> dict[str, torch.Tensor]:
        """The real tensors of a program: names repeat between methods, so the first of those that fit best.

        None may contradict in a shape. ExecuTorch adds tensors of its own, one for each number between operators, so some
        names may be unknown.
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
        name = operator_name(node)
        rule = lowerings().get(name)
        if rule is None or self.excluded.may_name(name) or self._vetoed(node):
            return False
        return name in self._preserve or (rule.preserve is not None and rule.preserve(node))

    def _vetoed(self, node: Node) -> bool:
        """Whether the user asked to preserve this operator, but not this node of it."""
        if self._check_op_support is None or operator_name(node) not in self._preserve:
            return False
        return not self._check_op_support(node)

    def _delegable(self, ep: ExportedProgram, names: set[str]) -> set[Node]:
        """The nodes of these operators whose clusters would be delegated."""
        attempts = Attempts(Constants(ep, self._given), self._check(), self.options)
        kept: set[Node] = set()
        for cluster in find_clusters(ep.graph):
            found = [node for node in cluster.nodes if operator_name(node) in names and not self._vetoed(node)]
            if found:
                self._examine(cluster, attempts)
                kept.update(found if cluster.accepted else ())
        return kept

    def _examine(self, cluster: Cluster, attempts: Attempts) -> None:
        for node in cluster.cores:
            pattern = self.excluded.pattern(node)
            if pattern:
                message = f"operators_not_to_delegate names it ({pattern})"
                cluster.refuse(node, Reason("excluded", message, node.name, "remove it from the list"))
                return
        known = [self._whole.get(str(node.args[1])) for node in cluster.cores if operator_name(node) == whole.OPERATOR]
        if len(cluster.cores) == 1 and known and known[0] is not None:
            cluster.operators = known[0]  # lowered before; its partition is lowered and checked as a whole all the same
            return
        examine(cluster, attempts)

    def _fitting(
        self, partitions: list[list[Cluster]], program: ExportedProgram, attempts: Attempts
    ) -> list[_Fitted] | None:
        """Each partition as a whole, or in pieces that fit the memory; None when clusters were refused on the way.

        Only a whole partition shows which transposes it needs, so checking clusters alone would not be enough.
        """
        waiting, done = list(partitions), []
        order = {node: index for index, node in enumerate(program.graph.nodes)}
        while waiting:
            members = waiting.pop(0)
            position = {node: cluster for cluster in members for node in cluster.nodes}
            attempt = self._with_states(position, program, order, attempts)
            if attempt is None:
                attempt = attempts.lower(sorted(position, key=order.__getitem__))
            lowered = attempt.lowered
            problems = [attempt.problem] if attempt.problem is not None else []
            if lowered is not None:
                outcome = self.trials.outcome(lowered)
                problems = [(lowered.nodes[at], reason) for at, reason in outcome.left]
                if outcome.whole:
                    done.append(_Fitted(members, attempt.region, lowered))
                    continue
                if not problems:
                    pieces = split(members, _last_graphs(lowered, outcome.graphs))
                    if len(pieces) > 1:
                        waiting = [*pieces, *waiting]
                        continue
                    problems = [(lowered.nodes[-1], self.trials.shortage(lowered))]
            for node, reason in problems:
                position[node].refuse(node, reason)
            return None
        return done

    def _with_states(
        self, inside: Collection[Node], program: ExportedProgram, order: Mapping[Node, int], attempts: Attempts
    ) -> Attempt | None:
        """A partition that keeps its buffers itself; None where it has none, or does not become one NeutronGraph with them.

        What NXP's converter does with variables is not public.
        """
        states = kept_by(program, inside, program.graph.output_node().args[0])  # type: ignore[arg-type]
        if not states or self.options.converter == "nxp":
            return None
        nodes = sorted({*inside, *(node for state in states for node in state.borders())}, key=order.__getitem__)
        attempt = attempts.lower(nodes, states)
        return attempt if attempt.lowered is not None and self.trials.outcome(attempt.lowered).whole else None

    def _worth(self, fitted: _Fitted) -> bool:
        """Whether a partition is faster on the NPU; refuses its clusters when not."""
        nodes = [node for cluster in fitted.members for node in cluster.nodes]
        trip = weigh(nodes, fitted.lowered, self.options, self.cpu_costs)
        if not trip.worth:
            for cluster in fitted.members:
                node = cluster.first
                hint = 'placement="all" delegates it all the same'
                cluster.refuse(node, Reason("slower_on_npu", trip.reason, node.name, hint))
        return trip.worth

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
    """A partition that becomes one NeutronGraph, as it was lowered on trial."""

    members: list[Cluster]
    region: Region
    lowered: Lowered


def _last_graphs(lowered: Lowered, graphs: list[int]) -> dict[Node, int]:
    """Node → the last of the graphs that its operators went into."""
    found: dict[Node, int] = {}
    for node, number in zip(lowered.nodes, graphs, strict=True):
        found[node] = max(found.get(node, 0), number)
    return found


def _overload(node: Node) -> Any:
    """The ATen operator of a node, which in an Edge graph is wrapped."""
    return node.target if isinstance(node.target, torch._ops.OpOverload) else getattr(node.target, "_op", node.target)


def _numbered(options: Options, index: int) -> Options:
    return dataclasses.replace(options, partition=index)


def _preserved(operators: Sequence[Any]) -> frozenset[str]:
    for operator in operators:
        if not isinstance(operator, torch._ops.OpOverload):
            raise OptionError(
                f"preserve_ops contains {operator!r}", where=WHERE,
                hint="give operators such as torch.ops.aten.hardswish.default",
            )  # fmt: skip
    return frozenset(str(operator) for operator in operators)
