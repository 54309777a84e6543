"""Measure the accuracy of a variant on labelled data; a problem with the data is reported beside the other figures.

Example:
    >>> score_compiled(Data("test.npz"), program.data, where="cifarnet").row["accuracy"]
    0.861
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from openneutron.analyze.accuracy import Form, Score
from openneutron.analyze.data.labelled import Wanted, check_data, wanted_by
from openneutron.analyze.data.shards import files_of
from openneutron.analyze.data.source import Data
from openneutron.analyze.forms import compiled_form, torch_form
from openneutron.analyze.sharded import score_shards
from openneutron.errors import OpenNeutronError, OptionError
from openneutron.executorch.capture.sources import find

if TYPE_CHECKING:
    from openneutron.executorch.capture.sources import Loaded

ZOO: Final = "zoo"  # in place of a path: the test images that a network of the zoo brings
# Column → what the page and the table call it.
SCORES = {
    "accuracy": "accuracy",
    "accuracy_low": "accuracy, low end (95 %)",
    "accuracy_high": "accuracy, high end (95 %)",
    "float_accuracy": "accuracy in float",
    "samples": "samples",
}


@dataclass(frozen=True)
class Scored:
    """Measured columns; `problem` says why others are empty, or why a part of the data was left out."""

    row: dict[str, Any] = field(default_factory=dict)
    problem: str = ""


NOT_SCORED: Final = Scored()


def score_compiled(data: Data, compiled: bytes, *, where: str) -> Scored:
    """Measure the accuracy of a compiled file with its confidence interval."""

    def make() -> tuple[Form, Wanted]:
        return compiled_form(compiled, where=where)

    score, problem = _score(make, data, where)
    if score is None:
        return Scored(problem=problem)
    low, high = score.interval()
    shares = {"accuracy": score.accuracy, "accuracy_low": low, "accuracy_high": high}
    return Scored({**{name: round(share, 6) for name, share in shares.items()}, "samples": score.total}, problem)


def score_float(data: Data, loaded: Loaded, *, where: str) -> Scored:
    """Measure the accuracy of a PyTorch model before quantization; nothing for a model that is quantized already."""
    if not loaded.is_module:
        return NOT_SCORED
    score, problem = _score(lambda: (torch_form("float", loaded.model, loaded), wanted_by(loaded)), data, where)
    return Scored({} if score is None else {"float_accuracy": round(score.accuracy, 6)}, problem)


def check_scoring(data: Data, source: str) -> None:
    """Check, before any compile, that the data can belong to this model."""
    if data.given != ZOO:
        check_data(data.given, where=source)
    elif find(source).kind != "zoo":
        raise OptionError(
            f"it is no network of the zoo, and --data is {ZOO}",
            where=source,
            hint="give the data for it in a TOML file",
        )


def data_identity(data: Data, code_of: Callable[[str], str]) -> str:
    """Return a digest of the data: of files' names, sizes and times (data may be large), or of a generator's code.

    Data of the zoo is part of the package.
    """
    given = str(data.given)
    parts: list[Any] = [given, data.limit, data.mean, data.std]
    if given != ZOO:
        files = files_of(given)
        parts += [[str(file), file.stat().st_size, file.stat().st_mtime_ns] for file in files if file.is_file()]
        if not files:
            parts.append(code_of(given.partition(":")[0]))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _score(make: Callable[[], tuple[Form, Wanted]], data: Data, where: str) -> tuple[Score | None, str]:
    """Return the score, or None, and the problem with the data, or ""."""
    own = Data(None, data.limit) if data.given == ZOO else data
    try:
        form, wanted = make()
        found = score_shards([form], own.shards(wanted, zoo=where), limit=data.limit)
    except OpenNeutronError as error:
        return None, f"no accuracy: {error}"
    return found.scores[0], f"left out: {'; '.join(found.failures)}" if found.failures else ""
