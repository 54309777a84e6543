"""RewriteCheck: runs every rewrite of the float graph on calibration samples, and undoes those that change the model.

Passes run first, and their replacements are tracked. Then the original and the rewritten graph run once on a few samples
and are compared at the end of every rewritten region. Comparing only the model's outputs would not be enough: a saturation
or a mask behind a region can hide an error in it. If all regions agree, which is usual, the check is done.

Otherwise the passes run again from the start, one at a time, each followed by a comparison. Regions that differ by more than
float rounding are restored, and a note names them.

Then the outputs alone are compared on more samples. One on which they differ joins the few, and the passes run once more: a
rewrite can be right on most samples, as that of a clamp which few values reach.

Example:
    >>> check = RewriteCheck(module, batches)
    >>> check.run(PASSES)
    >>> check.settle()
    >>> check.notes
    ('recognize_layer_norm was undone at aten.clamp.default (clamp, net.py:12): it changes the model ... (5.0 dB)',)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch.fx import Graph, GraphModule, Node

from openneutron.executorch.fx import copy_graph, operator_name, source_line, value_of
from openneutron.executorch.quantize.check.agreement import difference
from openneutron.executorch.quantize.check.keep_float import (
    is_infinite,
    keep_infinite_float,
    keep_lossy_float,
)
from openneutron.executorch.quantize.check.late import samples_that_differ
from openneutron.executorch.quantize.check.put_back import put_back
from openneutron.executorch.quantize.check.regions import Boundary, boundaries, snapshot
from openneutron.executorch.quantize.check.values import Batch, copy_tensors, preserve_state, run_graph
from openneutron.executorch.quantize.passes._ranges import forget_samples, show_samples
from openneutron.executorch.quantize.states import states_of
from openneutron.executorch.upstream.names import is_erased, tree_leaves

Pass = Callable[[GraphModule], int]

# Each sample runs twice, node by node; four take a few hundredths of a compile. Accuracy is measured on more.
SAMPLES: Final = 4
# Of these the outputs alone are compared, at most as many as compute so many elements: seconds for large images.
MOST_SAMPLES: Final = 64
_MOST_ELEMENTS: Final = 200_000_000
# Bounds for unrolled recurrent layers with thousands of similar nodes, and for large images.
_MANY_NODES: Final = 2000
_MANY_ELEMENTS: Final = 1_000_000
_ROUNDS: Final = 3  # of samples that join; each brings the first that still differ


class RewriteCheck:
    """Runs passes over a module and compares the results with the original module."""

    def __init__(self, model: GraphModule, samples: Sequence[Batch]) -> None:
        self.model = model
        self.is_wide: Callable[[Node], bool] = lambda node: False  # the nodes that get 16 bits
        few, many = _affordable(model.graph)
        self.samples = tuple(samples[:few])
        self._every = tuple(samples[:many])
        self._first = copy_graph(model.graph)
        self._origins = {node: {twin} for node, twin in zip(model.graph.nodes, self._first.nodes, strict=True)}
        self._followed: set[Node] = set()
        self._steps: list[Pass] = []
        self._notes: dict[str, None] = {}
        self._warnings: dict[str, None] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Which regions were restored, and why."""
        return tuple(self._notes)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where the model itself gives NaN."""
        return tuple(self._warnings)

    def run(self, passes: Iterable[Pass]) -> None:
        """Run passes in place and track what they replace; `settle` compares."""
        show_samples(self.model, self.samples)
        try:
            for step in passes:
                before = snapshot(self.model.graph)
                step(self.model)
                self._steps.append(step)
                for one in boundaries(before, self.model.graph):
                    self._followed.add(one.new)
                    if one.new is not one.old:
                        self._origins.setdefault(one.new, set()).update(self._origins.get(one.old, ()))
        finally:
            forget_samples(self.model)

    def settle(self) -> None:
        """Compare with the original module, and undo what changed it."""
        if self.samples and not self._agrees():
            self._replay()
        for _ in range(_ROUNDS):
            if not self._add_late_samples():
                break
            if not self._agrees():
                self._replay()
        self.model.graph.eliminate_dead_code()
        self.model.recompile()

    def _add_late_samples(self) -> bool:
        """Add samples on which the outputs differ to those compared region by region; False if there are none."""
        late = [at for at in samples_that_differ(self.model, self._first, self._every) if at >= len(self.samples)]
        if not late:
            return False
        if states_of(self.model):  # a state differs in the run that leads to it
            self.samples = self._every[: late[0] + 1]
            return True
        first = late[:SAMPLES]
        others = [one for at, one in enumerate(self._every[len(self.samples) :], len(self.samples)) if at not in first]
        added = tuple(self._every[at] for at in first)
        self._every = (*self.samples, *added, *others)
        self.samples += added
        return True

    def _agrees(self) -> bool:
        """Return whether every replacement has the value of the original node, and the outputs agree."""
        followed = {
            node: self._origins.get(node, set())
            for node in self.model.graph.nodes
            if node in self._followed or node.op == "output" or _is_discrete(node)
        }
        asked = {origin for origins in followed.values() for origin in origins}
        fine, infinite = True, dict[Node, None]()
        first = _first_values(self.model, self._first, self.samples, asked)
        if first is None:
            return True  # the model fails on its own samples: calibration reports it
        wanted, endless = first.wanted, first.infinite
        if first.nan is not None:
            self._warn_of_nan(*first.nan)

        def visit(node: Node, value: Any) -> Any:
            nonlocal fine
            for origin in followed.get(node, ()):
                fine = fine and not _difference(wanted[at][origin], value)
            if is_infinite(value):
                infinite[node] = None
                fine = fine and not any(origin not in endless for origin in self._origins.get(node, ()))
            return value

        with preserve_state(self.model):
            for at, sample in enumerate(self.samples):  # noqa: B007  read by visit
                try:
                    run_graph(self.model, self.model.graph, sample, visit, followed)
                except Exception:  # the original graph ran, so a rewrite broke this one
                    return False
        if fine:
            keep_infinite_float(infinite)
        return fine

    def _warn_of_nan(self, at: int, node: Node, value: torch.Tensor) -> None:
        """Warn that the model itself gives NaN on a sample; only the first operator is named."""
        missing = int(torch.isnan(value).sum())
        text = f"{describe_node(node)} gives NaN in {missing} of {value.numel()} values on calibration sample {at}"
        self._warnings.setdefault(f"{text}: the program gives numbers there that mean nothing")

    def _replay(self) -> None:
        """Run the passes again on the original graph, comparing after each pass."""
        self.model.graph = copy_graph(self._first)
        self._notes.clear()
        back: list[Node] = []
        show_samples(self.model, self.samples)
        try:
            for step in self._steps:
                back += self._run_checked(step)
        finally:
            forget_samples(self.model)
        infinite: dict[Node, None] = {}

        def visit(node: Node, value: Any) -> Any:
            if is_infinite(value):
                infinite[node] = None
            return value

        with preserve_state(self.model):
            for sample in self.samples:
                run_graph(self.model, self.model.graph, sample, visit)
            keep_infinite_float(infinite)
        with preserve_state(self.model):
            left = [one for one in back if not is_erased(one)]
            for node, loss in keep_lossy_float(self.model, left, self.samples, self.is_wide):
                bits = 16 if self.is_wide(node) else 8
                self._notes[f"{describe_node(node)} stays in float: INT{bits} would leave it {loss:.1f} dB"] = None

    def _run_checked(self, step: Pass) -> list[Node]:
        """Run one pass and restore the regions it changed wrongly; returns the restored operators."""
        graph = self.model.graph
        earlier = copy_graph(graph)
        twin = dict(zip(graph.nodes, earlier.nodes, strict=True))
        before = snapshot(graph)
        step(self.model)
        found = boundaries(before, graph)
        wrong = self._wrong_boundaries(earlier, twin, found) if found else {}
        if not wrong:
            return []
        name = getattr(step, "__name__", str(step))
        for one, what in wrong.items():
            self._notes[
                f"{name} was undone at {describe_node(one.old)}: it changes the model on the calibration data ({what})"
            ] = None
        try:
            back = put_back(graph, before, found, list(wrong))
            again = self._wrong_boundaries(earlier, twin, boundaries(before, graph))
        except RuntimeError:
            again = wrong
        if again:
            self.model.graph = earlier
            return []
        return back

    def _wrong_boundaries(
        self, earlier: Graph, twin: dict[Node, Node], found: Sequence[Boundary]
    ) -> dict[Boundary, str]:
        """Return the boundaries whose values differ; each is compared alone, with correct values fed to later nodes."""
        nodes = [node for node in self.model.graph.nodes if node in twin]
        discrete = {node for node in nodes if _is_discrete(node) or node.op == "output"}
        behind: dict[Node, list[Boundary]] = {}
        for one in found:
            behind.setdefault(one.new, []).append(one)
        asked = {twin[one.old] for one in found} | {twin[node] for node in discrete}
        first = _first_values(self.model, earlier, self.samples, asked)
        if first is None:
            return {}
        wanted, endless = first.wanted, first.infinite
        wrong: dict[Boundary, str] = {}

        def visit(node: Node, value: Any) -> Any:
            for one in behind.get(node, ()):
                right = wanted[at][twin[one.old]]
                what = _difference(right, value)
                if what:
                    wrong.setdefault(one, what)
                    value = copy_tensors(right)
            if node in discrete and (what := _difference(wanted[at][twin[node]], value)):
                for one in _in_front(node, behind):
                    wrong.setdefault(one, f"{describe_node(node)} behind it: {what}")
                return copy_tensors(wanted[at][twin[node]])
            if is_infinite(value) and node in twin and twin[node] not in endless:
                for one in _in_front(node, behind):
                    wrong.setdefault(one, f"{describe_node(node)} behind it has no finite number")
            return value

        with preserve_state(self.model):
            for at, sample in enumerate(self.samples):
                try:
                    run_graph(self.model, self.model.graph, sample, visit, behind)
                except Exception as error:  # a rewritten graph must run
                    return dict.fromkeys(found, f"{type(error).__name__} on calibration sample {at}")
        return wrong


def _affordable(graph: Graph) -> tuple[int, int]:
    """Return how many samples to compare in regions and how many in outputs, from the size of the graph alone so that equal
    models give equal programs.
    """
    values = [value_of(node) for node in graph.nodes if node.op == "call_function"]
    shapes = [value.shape for value in values if isinstance(value, torch.Tensor)]
    # A size that depends on data is not known yet; capture refuses it later.
    elements = sum(math.prod(shape) for shape in shapes if all(isinstance(size, int) for size in shape))
    few = SAMPLES if elements <= _MANY_ELEMENTS else SAMPLES // 2
    if len(graph.nodes) > _MANY_NODES:
        few = 1
    return few, max(few, min(MOST_SAMPLES, _MOST_ELEMENTS // max(1, elements)))


def describe_node(node: Node) -> str:
    """Describe a node for its user: operator, name, source line and module."""
    parts = ", ".join(part for part in (node.name, source_line(node)) if part)
    return f"{operator_name(node) or node.op} ({parts})"


@dataclass
class _First:
    """Values of a graph on the samples: those asked for, nodes with infinities or NaN, and where NaN begins."""

    wanted: list[dict[Node, Any]] = field(default_factory=list)
    infinite: set[Node] = field(default_factory=set)
    nan: tuple[int, Node, torch.Tensor] | None = None


def _first_values(model: GraphModule, graph: Graph, samples: Sequence[Batch], asked: set[Node]) -> _First | None:
    """Run a graph on the samples and return the tracked values; None if it fails on them."""
    first = _First()

    def visit(node: Node, value: Any) -> Any:
        if node in asked:
            first.wanted[-1][node] = copy_tensors(value)
        if is_infinite(value):
            first.infinite.add(node)
            if first.nan is None and bool(torch.isnan(value).any()):
                first.nan = len(first.wanted) - 1, node, value
        return value

    with preserve_state(model):
        for sample in samples:
            first.wanted.append({})
            try:
                run_graph(model, graph, sample, visit, asked)
            except Exception:  # any exception of the model
                return None
    return first


def _is_discrete(node: Node) -> bool:
    """Return whether the values are booleans or integers: their producer, such as `p > 0`, is sensitive to differences
    that no SQNR shows.
    """
    value = value_of(node)
    return node.op == "call_function" and isinstance(value, torch.Tensor) and not value.is_floating_point()


def _in_front(node: Node, behind: dict[Node, list[Boundary]]) -> list[Boundary]:
    """Return the nearest boundaries before a node."""
    found: list[Boundary] = []
    waiting, seen = [node], {node}
    while waiting:
        for source in waiting.pop().all_input_nodes:
            if source in seen:
                continue
            seen.add(source)
            if source in behind:
                found += behind[source]
            else:
                waiting.append(source)
    return found


def _difference(wanted: Any, found: Any) -> str:
    """Describe the first difference between two values, each a tensor or several."""
    if isinstance(wanted, torch.Tensor):
        return difference(wanted, found)
    pairs = zip(tree_leaves(wanted), tree_leaves(found), strict=True)
    return next((text for one, other in pairs if (text := difference(one, other))), "")
