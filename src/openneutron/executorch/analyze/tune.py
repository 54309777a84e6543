"""Tune: reach an accuracy or an SQNR at the fewest cycles, by choices of the quantizer alone.

What costs no cycles comes first: methods, observers, each tried on top of what has helped so far. If
that is not enough, each layer is left in float once (`bisect`) to learn what its quantization costs; the dearest get an
observer of their own, then 16-bit activations, one after the other, until the goal is reached. Layers in 16 bits that the
goal turns out not to need go back. Every trial quantizes and measures; nothing is random, so the same data give the same file.

Example:
    >>> found = tune(model, (image,), calibration=batches, samples=images, classes=labels, goal=Goal(drop=0.001))
    >>> Path("q.toml").write_text(to_toml(found.choices, found.rows()))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from openneutron.errors import OptionError
from openneutron.executorch.analyze.bisect import Measure, layer_groups, measure_of, run_partly
from openneutron.executorch.capture.export import Inputs, evaluation, export, one_thread
from openneutron.executorch.fx import module_path, operator_name
from openneutron.executorch.pipeline import build
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.executorch.quantize.choices import Choices, LayerChoice, to_table
from openneutron.executorch.quantize.measure.original import run_original
from openneutron.executorch.quantize.post_training import quantize_exported
from openneutron.executorch.quantize.pt2e import calibrate, prepare
from openneutron.executorch.quantize.states import restore, states_of
from openneutron.executorch.torch_lock import torch_lock
from openneutron.options import DEFAULT_TARGET
from openneutron.process_pool import map_in_processes

Progress = Callable[[str], None]

TRIALS: Final = 40  # a network of thirty layers needs about twenty
CYCLES: Final = 1.1  # of the network with 8 bits everywhere
_SENSITIVITY_SAMPLES: Final = 8  # enough to put layers in order; each is run once for each layer
_OBSERVED: Final = 3  # of the dearest layers, those that are tried with observers of their own
MIN_BETTER_DB: Final = 0.05  # decibels; a smaller gain is within what other samples would change


@dataclass(frozen=True)
class Goal:
    """What to reach: an output SQNR in decibels, a share of right answers, or one that is `drop` below float's."""

    sqnr: float | None = None
    accuracy: float | None = None
    drop: float | None = None

    def __post_init__(self) -> None:
        if sum(one is not None for one in (self.sqnr, self.accuracy, self.drop)) != 1:
            raise OptionError("tune needs one goal", hint="give --sqnr, --accuracy or --drop")

    @property
    def needs_classes(self) -> bool:
        """Whether the samples must be labelled."""
        return self.sqnr is None

    def needed(self, floating: Measure) -> float:
        """The figure to reach."""
        if self.drop is not None:
            return floating.accuracy - self.drop
        return self.sqnr if self.sqnr is not None else self.accuracy  # type: ignore[return-value]

    def figure(self, measure: Measure) -> float:
        """The figure of a measure that the goal is about."""
        return measure.accuracy if self.needs_classes else measure.sqnr


@dataclass(frozen=True)
class Trial:
    """One set of choices and what it reached; `cycles` against 8 bits everywhere where it was compiled, else 0."""

    change: str
    choices: Choices
    measure: Measure
    kept: bool = False
    cycles: float = 0.0


@dataclass(frozen=True)
class Tuned:
    """The choices, whether they reach the goal, and everything that was tried, in order."""

    choices: Choices
    measure: Measure
    floating: Measure
    reached: bool
    cycles: float
    trials: tuple[Trial, ...]
    layers: tuple[tuple[str, float], ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """The trials as tables of a quantization file."""
        return [_row(trial) for trial in self.trials]


def _row(trial: Trial) -> dict[str, Any]:
    row: dict[str, Any] = {"change": trial.change, "sqnr": round(trial.measure.sqnr, 2)}
    if trial.measure.accuracy >= 0:
        row["accuracy"] = round(trial.measure.accuracy, 4)
    if trial.cycles:
        row["cycles"] = round(trial.cycles, 3)
    return {**row, "kept": trial.kept}


@torch_lock()
def tune(
    model: torch.nn.Module,
    example_inputs: Inputs,
    *,
    calibration: Sequence[Inputs],
    samples: Sequence[Inputs],
    goal: Goal,
    classes: Sequence[int] | None = None,
    start: Choices | None = None,
    target: str = DEFAULT_TARGET,
    most_cycles: float = CYCLES,
    trials: int = TRIALS,
    workers: int = 1,
    progress: Progress | None = None,
) -> Tuned:
    """Search from `start`; with `target` "" nothing is compiled, and cycles are neither known nor bounded.

    With several `workers` the next trials and the layers are measured at the same time, with the same result.
    """
    if goal.needs_classes and classes is None:
        raise OptionError("an accuracy needs labelled data", hint="give --data, or a goal in decibels: --sqnr")
    with evaluation(model), torch.no_grad(), one_thread():
        search = _Search(
            model, example_inputs, calibration, samples, classes, goal, start or Choices(), target, most_cycles, trials,
            workers, progress or (lambda text: None),
        )  # fmt: skip
        return search.run()


@dataclass
class _Search:
    model: torch.nn.Module
    example_inputs: Inputs
    calibration: Sequence[Inputs]
    samples: Sequence[Inputs]
    classes: Sequence[int] | None
    goal: Goal
    best: Choices
    target: str
    most_cycles: float
    budget: int
    workers: int
    stage: Progress
    trials: list[Trial] = field(default_factory=list)
    layers: list[tuple[str, float]] = field(default_factory=list)
    _priced: dict[Choices, int] = field(default_factory=dict)
    _ahead: dict[Choices, Measure] = field(default_factory=dict)

    def run(self) -> Tuned:
        self.stage("running in float")
        self.wanted = run_original(self.model, self.samples)
        self.floating = measure_of(self.wanted, self.wanted, self.classes)
        self.exported: ExportedProgram = export(self.model, self.example_inputs)
        self.start = self.best
        self.measure = self._measure("as it is", self.best)
        self._keep()
        for step in (self._whole_network, self._observers_of_layers, self._wide_layers, self._narrow_again):
            step()
        cycles = self._cycles(self.best) if self.target else 0.0
        return Tuned(
            self.best, self.measure, self.floating, self.reached, cycles, tuple(self.trials), tuple(self.layers)
        )

    @property
    def reached(self) -> bool:
        return self._reaches(self.measure)

    def _reaches(self, measure: Measure) -> bool:
        # Shares are counts of samples: a drop of 0.001 of 1,000 is one of them, whatever the last bit says.
        return self.goal.figure(measure) >= self.goal.needed(self.floating) - 1e-9

    def _whole_network(self) -> None:
        """Choices for all layers that cost no cycles."""
        has_norms = any("layer_norm" in operator_name(node) for node in self.exported.graph.nodes)
        tried: list[tuple[str, dict[str, Any]]] = [
            *([] if self.best.per_channel else [("weights per channel", {"per_channel": True})]),
            ("biases corrected", {"correct_bias": True}),
            ("weights rounded for their layer", {"adaround": True}),
            *([("norms smoothed", {"smooth": True})] if has_norms else []),
            ("layers equalized", {"equalize": True}),
            *((f"observer {name}", {"observer": name}) for name in ("minmax", "histogram", "percentile")),
        ]
        self._try_all([(change, partial(self._with_all, how)) for change, how in tried])

    def _observers_of_layers(self) -> None:
        """Ranges of their own for the layers that cost most."""
        if self._over():
            return
        self._find_layers()
        for name, _ in self.layers[:_OBSERVED]:
            own = LayerChoice(name, observer="minmax"), LayerChoice(name, observer="percentile", percentile=99.9)
            texts = f"{name}: minmax", f"{name}: percentile {own[1].percentile}"
            self._try_all([(text, partial(self._with, one)) for text, one in zip(texts, own, strict=True)])

    def _wide_layers(self) -> None:
        """16-bit activations, dearest layer first, as far as the cycles allow."""
        for name, _ in self.layers:
            if self._over():
                return
            candidate = self._with(LayerChoice(name, activations="int16"))
            ratio = self._cycles(candidate) if self.target else 0.0
            if ratio <= self.most_cycles:
                self._try(f"{name}: 16 bits", candidate, cycles=ratio)

    def _narrow_again(self) -> None:
        """Layers in 16 bits that the goal does not need."""
        wide = [one for one in self.best.layers if one.activations == "int16"]
        for one in wide[:-1] if self.reached else []:  # without the last the goal was not reached
            if len(self.trials) >= self.budget:
                return
            candidate = replace(self.best, layers=tuple(other for other in self.best.layers if other is not one))
            measure = self._measure(f"{one.name}: 8 bits again", candidate)
            if self._reaches(measure):
                self.best, self.measure = candidate, measure
                self._keep()

    def _over(self) -> bool:
        return self.reached or len(self.trials) >= self.budget

    def _try_all(self, changes: Sequence[tuple[str, Callable[[], Choices]]]) -> None:
        """One change after the other, each on top of the best so far; workers try the next ones before it is known."""
        left = list(changes)
        while left and not self._over():
            best, batch = self.best, [make() for _, make in left[: self.workers]]
            self._look_ahead(left[0][0], batch)
            for choices in batch:
                self._try(left.pop(0)[0], choices)
                if self.best is not best or self._over():
                    break  # the rest of the batch is based on choices that are no longer the best

    def _look_ahead(self, change: str, batch: Sequence[Choices]) -> None:
        new = [choices for choices in dict.fromkeys(batch) if not self._known(choices)]
        if len(new) > 1:
            self.stage(f"trials from {len(self.trials) + 1} on: {change}")
            found = map_in_processes(lambda at: self._figures(new[at]), range(len(new)), min(self.workers, len(new)))
            self._ahead = dict(zip(new, found, strict=True))

    def _known(self, choices: Choices) -> bool:
        return any(trial.choices == choices for trial in self.trials)

    def _try(self, change: str, choices: Choices, *, cycles: float = 0.0) -> None:
        if self._known(choices):
            return
        measure = self._measure(change, choices, cycles)
        if self._is_better(measure):
            self.best, self.measure = choices, measure
            self._keep()

    def _is_better(self, measure: Measure) -> bool:
        if self.goal.needs_classes and measure.accuracy != self.measure.accuracy:
            return measure.accuracy > self.measure.accuracy
        return measure.sqnr > self.measure.sqnr + MIN_BETTER_DB

    def _measure(self, change: str, choices: Choices, cycles: float = 0.0) -> Measure:
        self.stage(f"trial {len(self.trials) + 1}: {change}")
        found = self._ahead[choices] if choices in self._ahead else self._figures(choices)
        self.trials.append(Trial(change, choices, found, cycles=cycles))
        return found

    def _figures(self, choices: Choices) -> Measure:
        made = quantize_exported(self.exported, self.calibration, choices, NeutronQuantizer.of(choices))
        return measure_of(run_partly(made.module, self.samples, set()), self.wanted, self.classes)

    def _keep(self) -> None:
        self.trials[-1] = replace(self.trials[-1], kept=True)

    def _with_all(self, how: dict[str, Any]) -> Choices:
        return replace(self.best, **how)

    def _with(self, layer: LayerChoice) -> Choices:
        """The best choices with one more about a layer, in place of one that said the same sort of thing."""
        kind = layer.activations is not None
        others = [one for one in self.best.layers if (one.name, one.activations is not None) != (layer.name, kind)]
        return replace(self.best, layers=(*others, layer))

    def _cycles(self, choices: Choices) -> float:
        """Cycles against those with 8 bits everywhere."""
        narrow = replace(self.start, layers=(), activations="int8", precision=())
        return self._price(choices) / max(1, self._price(narrow))

    def _price(self, choices: Choices) -> int:
        if choices not in self._priced:
            self.stage(f"compiling for {self.target}")
            quick = self.calibration[:1]  # ranges do not change what is scheduled
            made = build(self.model, self.example_inputs, calibration=quick, target=self.target,
                         quantization=to_table(replace(choices, correct_bias=False, adaround=False)))  # fmt: skip
            self._priced[choices] = made.report.totals.cycles
        return self._priced[choices]

    def _find_layers(self) -> None:
        """What the quantization of each layer costs, in decibels of the output; the dearest first."""
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e

        self.stage("measuring what each layer costs")
        prepared = prepare(self.exported, NeutronQuantizer.of(self.best), samples=self.calibration)
        states = states_of(prepared)
        calibrate(prepared, self.calibration)
        module = convert_pt2e(prepared, fold_quantize=False)
        restore(module, states)
        samples, wanted = self.samples[:_SENSITIVITY_SAMPLES], self.wanted[:_SENSITIVITY_SAMPLES]

        def sqnr(off: set[Node]) -> float:
            return measure_of(run_partly(module, samples, off), wanted, None).sqnr

        base = sqnr(set())
        groups = layer_groups(module)
        reached = map_in_processes(
            lambda at: sqnr(groups[at].quantizes), range(len(groups)), min(self.workers, len(groups))
        )
        found: dict[str, float] = {}
        for group, figure in zip(groups, reached, strict=True):
            name = module_path(group.head) or group.head.name
            found[name] = max(found.get(name, -1e9), figure - base)
        self.layers = sorted(found.items(), key=lambda one: -one[1])
