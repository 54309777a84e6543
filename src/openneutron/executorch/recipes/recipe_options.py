"""The options of recipes: typed, checked, and refused by name when unknown."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from openneutron.errors import OptionError
from openneutron.executorch.compile_spec import spec_options
from openneutron.executorch.engines import Engines
from openneutron.executorch.quantize.choices import NAMES, Choices
from openneutron.executorch.quantize.precision import PrecisionLike, Precisions
from openneutron.executorch.quantize.specs import OBSERVERS
from openneutron.executorch.quantize.train.training import Schedule, TrainFunction
from openneutron.options import SCHEMA, Options

Batches = Iterable[tuple[Any, ...]]


def _is_batches(calibration: object) -> bool:
    """A tensor is iterable too, but its rows are not batches."""
    return isinstance(calibration, Iterable) and not hasattr(calibration, "dim")


@dataclass(frozen=True)
class CalibrationOptions:
    """`calibration` is an iterable of input tuples or a function that returns one; without it the example inputs serve."""

    calibration: Batches | Callable[[], Batches] | None = None

    def check(self, *, is_qat: bool, where: str) -> None:
        """An `OptionError` for what is no calibration data."""
        if not (self.calibration is None or callable(self.calibration) or _is_batches(self.calibration)):
            kind = type(self.calibration).__name__
            raise OptionError(f"calibration is a {kind}", where=where, hint="give a list of input tuples")


@dataclass(frozen=True)
class QuantizationOptions(CalibrationOptions):
    """What sets ranges: `calibration` inputs after training, or a `train` function for training with rounding.

    `observer` finds ranges in calibration. `activations` and `precision` choose 16 bits, as `NeutronQuantizer`
    takes them. `schedule` says when training freezes statistics.
    """

    observer: str = "histogram"
    exclude: Sequence[str] = ()
    activations: str = "int8"
    precision: PrecisionLike = ()
    train: TrainFunction | None = None
    schedule: Schedule = field(default_factory=Schedule)
    progress: Callable[[str], None] | None = None

    def check(self, *, is_qat: bool, where: str) -> None:
        """An `OptionError` for options that contradict each other or the recipe."""
        if self.observer not in OBSERVERS:
            raise OptionError(f"observer is {self.observer!r}", where=where, hint=f"one of {', '.join(OBSERVERS)}")
        Precisions.of(self.precision, self.activations)  # says what is wrong with them
        if isinstance(self.exclude, str):
            raise OptionError(f"exclude is the string {self.exclude!r}", where=where, hint="give a list of patterns")
        if not isinstance(self.schedule, Schedule):
            raise OptionError(f"schedule is {self.schedule!r}", where=where, hint="give a recipes.Schedule")
        if self.progress is not None and not callable(self.progress):
            raise OptionError(f"progress is {self.progress!r}", where=where, hint="give a function of a string")
        if is_qat:
            self._check_training(where)
        elif self.train is not None:
            raise OptionError(
                "train is given, but the recipe quantizes after training", where=where, hint="take a QAT recipe"
            )
        super().check(is_qat=is_qat, where=where)

    def _check_training(self, where: str) -> None:
        if self.train is None:
            raise OptionError(
                "train is missing, and the recipe trains", where=where, hint="give train=function(model, training)"
            )
        if self.observer != "histogram":
            raise OptionError(
                f"observer is {self.observer!r}, but training follows ranges by moving averages", where=where,
                hint="leave observer out",
            )  # fmt: skip
        if not callable(self.train):
            raise OptionError(f"train is a {type(self.train).__name__}", where=where, hint="give a function")
        if self.calibration is not None:
            raise OptionError(
                "calibration and train are both given", where=where, hint="training finds the ranges itself"
            )


@dataclass(frozen=True)
class NeutronRecipeOptions(Options, QuantizationOptions):
    """How to compile for the NPU: the options of `openneutron.compile`, and how to quantize."""

    def neutron(self) -> Options:
        """The compile spec's content, which checks every field."""
        return spec_options({name: getattr(self, name) for name in SCHEMA})

    def choices(self, *, is_qat: bool) -> Choices:
        """How to quantize; methods that work on a converted module come after a recipe's last step, and are refused."""
        given = {name: getattr(self, name) for name in ("quantization", *NAMES)}
        chosen = Choices.of(given)
        if is_qat:
            chosen.refuse_methods("they are for quantization after training", "take a PTQ recipe")
        later = dataclasses.replace(chosen, equalize=False)
        later.refuse_methods("a recipe ends before they could begin", "openneutron.compile has them")
        return chosen


@dataclass(frozen=True)
class CortexMRecipeOptions(CalibrationOptions):
    """`cpu` is a Cortex-M core by ExecuTorch's name, such as "cortex-m33"."""

    cpu: str = "cortex-m33"


def options_of(engines: Engines, given: dict[str, Any], *, recipe: str) -> NeutronRecipeOptions | CortexMRecipeOptions:
    """Keyword arguments as options; an unknown one is an `OptionError` that lists those that exist."""
    kind = NeutronRecipeOptions if engines.neutron else CortexMRecipeOptions
    known = [one.name for one in dataclasses.fields(kind)]
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise OptionError(
                f"unknown option {name!r}; it has {', '.join(sorted(known))}", where=f"recipe {recipe}",
                hint=f"did you mean {near[0]!r}?" if near else "",
            )  # fmt: skip
    return kind(**given)
