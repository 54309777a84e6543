"""Search for the choices of the quantizer that reach a goal at the fewest cycles.

Choices that cost no cycles come first: methods and observers, each tried on top of those that helped. Then, from the noise of
each tensor, layers get 16-bit activations, as many as the goal needs and the cycles allow. Nothing is random, and only counts
bound the search, so the same data give the same choices. A trial that fails is recorded with its reason.

Example:
    >>> search = Search(trials, Goal(sqnr=25.0), floating, Choices())
    >>> search.try_free()
    >>> search.widen(costs, most=0.2)
    >>> search.best, search.measure
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np
import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import operator_name, origin
from openneutron.executorch.operators import annotation_rules
from openneutron.executorch.quality.goals import Goal, Measure
from openneutron.executorch.quality.tensors import Noise, QuantizedTensor, find_tensors, measure_noise
from openneutron.executorch.quality.trials import Trials
from openneutron.executorch.quality.widen import choose_wide
from openneutron.executorch.quantize.choices import Choices, LayerChoice
from openneutron.executorch.quantize.passes.decompose.decompose_wide import wide_operators
from openneutron.executorch.quantize.passes.replace.replace_magnitude import OPERATORS, is_magnitude
from openneutron.process_pool import map_in_processes

Progress = Callable[[str], None]

_WEIGHTS_SHARE: Final = 0.1  # of the allowed noise; with less, better weights gain less than half a decibel
_ROUNDS: Final = 2  # over the choices that cost nothing
_WIDE_TRIALS: Final = 4  # sets of layers with 16 bits; each next one aims below the goal by what the last missed
FAILED: Final = Measure(-120.0)


@dataclass(frozen=True)
class Trial:
    """One set of choices and what it reached; `cycles` against 8 bits everywhere where it was compiled, else 0.

    `problem` says why a trial failed, "" if it did not.
    """

    change: str
    choices: Choices
    measure: Measure
    kept: bool = False
    cycles: float = 0.0
    problem: str = ""


@dataclass
class Search:
    """The state of a search: the best choices so far, their measure, and all trials in order.

    `fixed` are options that stay as they are. Several `workers` measure the next trials at the same time, with the same result.
    """

    trials: Trials
    goal: Goal
    floating: Measure
    best: Choices
    budget: int = 40
    fixed: frozenset[str] = frozenset()
    workers: int = 1
    stage: Progress = lambda text: None
    labels: Sequence[torch.Tensor | None] = ()
    done: list[Trial] = field(default_factory=list)
    measure: Measure = FAILED
    layers: list[tuple[str, float]] = field(default_factory=list)
    _ahead: dict[Choices, tuple[Measure, str]] = field(default_factory=dict)
    _noise: tuple[Choices, list[QuantizedTensor], Noise] | None = None
    _floor: float | None = None  # noise of the weights that the search began with

    def begin(self, measure: Measure | None = None) -> None:
        """Measure the choices to start from, or take their known measure."""
        if measure is None:
            measure = self._measure("as it is", self.best)
        else:
            self.done.append(Trial("as it is", self.best, measure))
        self.measure = measure
        self._keep()

    @property
    def reached(self) -> bool:
        """Whether the best choices reach the goal."""
        return self.goal.is_reached(self.measure, self.floating)

    @property
    def over(self) -> bool:
        """Whether there is nothing more to try: the goal is reached, or the trials are used up."""
        return self.reached or len(self.done) >= self.budget

    def try_free(self) -> None:
        """Try the choices for all layers that cost no cycles.

        Methods for weights are left out where the noise of the weights is known to be small.
        """
        rounded = self._weights_matter() and self._has_weights_to_round()
        changes: list[tuple[str, dict[str, Any]]] = [
            ("weights per channel", {"per_channel": True}),
            ("channels equalized", {"equalize": True}),
            *([("weights rounded for their layer", {"adaround": True})] if rounded else []),
            ("biases corrected", {"correct_bias": True}),
            *((f"observer {name}", {"observer": name}) for name in ("percentile", "minmax", "mse", "histogram")),
            *([("norms smoothed", {"smooth": True})] if self.trials.has("layer_norm") else []),
        ]
        open_to_change = [(text, partial(self._with_all, how)) for text, how in changes if not self.fixed & how.keys()]
        for _ in range(_ROUNDS):  # what did not help alone may help on top of what did
            before, failed = self.best, {one.change for one in self.done if one.problem}
            self.try_all([(text, make) for text, make in open_to_change if text not in failed])
            if self.best == before or self.over:
                break

    def _has_weights_to_round(self) -> bool:
        """Return whether weights may be rounded one by one: those of 4 bits share a factor."""
        return "int4" not in (self.best.weights, *(one.weights for one in self.best.layers))

    def _weights_matter(self) -> bool:
        """Return whether the noise of the weights is a part worth reducing of what the goal allows; unknown noise is."""
        if self._floor is None or self.goal.sqnr is None:
            return True
        return self._floor > _WEIGHTS_SHARE * self._target()

    def weights_noise(self) -> float:
        """Return the noise that the weights of the best choices make, as a share of what the goal allows."""
        return float(self.find_layers()[1].floor.max(initial=0.0)) / self._target()

    def floor_of(self, choices: Choices) -> float:
        """Return the noise that the weights of some choices make, as a share of what the goal allows.

        Corrected biases are left out: with activations in float they correct what is not there.
        """
        try:
            module = self.trials.quantize(replace(choices, correct_bias=False))
        except Exception:  # a method that fails on this network is no reason to fail a compile
            return float("inf")
        return self._floor_in(module) / self._target()

    def measure_floor(self, module: GraphModule) -> None:
        """Measure the noise of the weights in a network with the choices that the search begins with."""
        self.stage("measuring the noise of the weights")
        self._floor = self._floor_in(module)

    def _floor_in(self, module: GraphModule) -> float:
        found = measure_noise(
            module, find_tensors(module), self.trials.samples, self.trials.wanted, self.labels, alone=False
        )  # fmt: skip
        return float(found.floor.max(initial=0.0))

    def widen(self, costs: Mapping[str, float], most: float, price: Callable[[Choices], float] | None = None) -> None:
        """Give layers 16-bit activations, as many as the goal needs.

        `costs` are shares of the cycles by the name of a node, of which `most` may be added; `price` returns the cycles of
        choices against 8 bits everywhere, where that is known.
        """
        aim = self._target()
        for _ in range(_WIDE_TRIALS):
            if self.over:
                return
            names = self.choose_layers(costs, most, aim)
            candidate = self.with_wide(names)
            if not names or self._is_known(candidate):
                return
            cycles = price(candidate) if price is not None else 0.0
            if cycles > 1 + most:
                most *= most / (cycles - 1) * 0.9  # the estimate was too low by that factor
                continue
            measure = self.attempt(f"16 bits in {len(names)} layers", candidate, cycles)
            aim *= 10 ** (min(0.0, measure.sqnr - self.goal.sqnr - 0.5) / 10) if self.goal.sqnr is not None else 0.5

    def _target(self) -> float:
        """Return the noise to reach, against the signal; a share of right answers is aimed at by halving the noise."""
        return 10 ** (-(self.goal.sqnr if self.goal.sqnr is not None else self.measure.sqnr + 3.0) / 10)

    def choose_layers(self, costs: Mapping[str, float], most: float, target: float) -> list[str]:
        """Return the names of the layers that need 16 bits for the noise to come down to `target`."""
        tensors, noise = self.find_layers()
        nodes = {node for one in tensors for node in (*one.makers, *one.readers)}
        chosen = choose_wide(
            tensors, noise, target=target, most=most, able=_can_be_wide,
            costs={node: costs.get(origin(node) or node.name, 0.0) * _growth(node) for node in nodes},
        )  # fmt: skip
        return [node.name for node in chosen]

    def find_layers(self, module: GraphModule | None = None) -> tuple[list[QuantizedTensor], Noise]:
        """Measure the noise of each tensor with the best choices, 8 bits everywhere; `layers` then has what each costs.

        `module` is the network with these choices, where there is one.
        """
        narrow = self._narrow()
        if self._noise is None or self._noise[0] != narrow:
            self.stage("measuring the noise of each tensor")
            module = self.trials.quantize(narrow) if module is None else module
            tensors = find_tensors(module)
            noise = measure_noise(module, tensors, self.trials.samples, self.trials.wanted, self.labels)
            self._noise = narrow, tensors, noise
            self._floor = float(noise.floor.max(initial=0.0)) if self._floor is None else self._floor
            self.layers = _losses(tensors, noise)
        return self._noise[1:]

    def _narrow(self) -> Choices:
        return replace(self.best, layers=tuple(one for one in self.best.layers if one.activations != "int16"))

    def with_wide(self, names: Iterable[str]) -> Choices:
        """Return the best choices with 16 bits in these layers and no others."""
        wide = tuple(LayerChoice(name, activations="int16") for name in names)
        return replace(self._narrow(), layers=(*self._narrow().layers, *wide))

    def narrow_again(self) -> None:
        """Return layers to 8 bits that the goal does not need."""
        wide = [one for one in self.best.layers if one.activations == "int16"]
        for one in wide[:-1] if self.reached else []:  # without the last the goal was not reached
            if len(self.done) >= self.budget:
                return
            candidate = replace(self.best, layers=tuple(other for other in self.best.layers if other is not one))
            measure = self._measure(f"{one.name}: 8 bits again", candidate)
            if self.goal.is_reached(measure, self.floating):
                self.best, self.measure = candidate, measure
                self._keep()

    def try_all(self, changes: Sequence[tuple[str, Callable[[], Choices]]]) -> None:
        """Try one change after the other, each on top of the best so far."""
        left = list(changes)
        while left and not self.over:
            best, batch = self.best, [make() for _, make in left[: self.workers]]
            self._look_ahead(left[0][0], batch)
            for choices in batch:
                self.attempt(left.pop(0)[0], choices)
                if self.best is not best or self.over:
                    break  # the rest of the batch is based on choices that are no longer the best

    def attempt(self, change: str, choices: Choices, cycles: float = 0.0) -> Measure:
        """Measure choices that are new, keep them if they are better, and return the measure."""
        known = next((one.measure for one in self.done if one.choices == choices), None)
        if known is not None:
            return known
        measure = self._measure(change, choices, cycles)
        if self.goal.is_better(measure, self.measure):
            self.best, self.measure = choices, measure
            self._keep()
        return measure

    def _look_ahead(self, change: str, batch: Sequence[Choices]) -> None:
        new = [choices for choices in dict.fromkeys(batch) if not self._is_known(choices)]
        if len(new) > 1:
            self.stage(f"trials from {len(self.done) + 1} on: {change}")
            found = map_in_processes(lambda at: self._figures(new[at]), range(len(new)), min(self.workers, len(new)))
            self._ahead = dict(zip(new, found, strict=True))

    def _is_known(self, choices: Choices) -> bool:
        return any(trial.choices == choices for trial in self.done)

    def _measure(self, change: str, choices: Choices, cycles: float = 0.0) -> Measure:
        self.stage(f"trial {len(self.done) + 1}: {change}")
        measure, problem = self._ahead[choices] if choices in self._ahead else self._figures(choices)
        self.done.append(Trial(change, choices, measure, cycles=cycles, problem=problem))
        return measure

    def _figures(self, choices: Choices) -> tuple[Measure, str]:
        try:
            return self.trials.measure(choices), ""
        except Exception as error:  # a method that fails on this network is no reason to fail a compile
            first = (str(error).strip().splitlines() or [""])[0]
            return FAILED, f"{type(error).__name__}: {first}"

    def _keep(self) -> None:
        self.done[-1] = replace(self.done[-1], kept=True)

    def _with_all(self, how: dict[str, Any]) -> Choices:
        return replace(self.best, **how)

    def with_layer(self, layer: LayerChoice) -> Choices:
        """Return the best choices with one more for a layer, in place of one about the same setting."""
        kind = layer.activations is not None
        others = [one for one in self.best.layers if (one.name, one.activations is not None) != (layer.name, kind)]
        return replace(self.best, layers=(*others, layer))


def _can_be_wide(node: Node) -> bool:
    rule = annotation_rules().get(operator_name(node))
    return (rule is not None and rule.wide) or wide_operators(node) > 0 or is_magnitude(node)


def _growth(node: Node) -> int:
    """Return how many times its own cycles 16 bits add for a layer: one that becomes several takes twice its cycles in each."""
    return 2 * (OPERATORS if is_magnitude(node) else max(1, wide_operators(node))) - 1


def _losses(tensors: Sequence[QuantizedTensor], noise: Noise) -> list[tuple[str, float]]:
    """Return the layers with the decibels that the noise of their tensors costs the worst part, the dearest first.

    Outputs that are all integers have no noise, and the layers are not known apart.
    """
    total = noise.floor + noise.alone.sum(axis=0)
    if not total.size:
        return []
    worst = int(total.argmax())
    found: dict[str, float] = {}
    for tensor, row in zip(tensors, noise.alone, strict=True):
        left = max(total[worst] - row[worst], total[worst] * 1e-12)
        loss = float(10 * np.log10(total[worst] / left)) if total[worst] > 0 else 0.0
        for layer in sorted(tensor.makers or tensor.readers, key=lambda one: one.name):
            name = layer.name
            found[name] = max(found.get(name, 0.0), loss)
    return sorted(found.items(), key=lambda one: -one[1])
