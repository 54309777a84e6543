"""Accuracy of a variant on labelled data; what keeps it from being measured is named, and the other figures stay.

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
from openneutron.analyze.data.given import Data
from openneutron.analyze.data.labelled import Wanted, check_data, wanted_by
from openneutron.analyze.data.shards import files_of
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
    """The columns that could be filled, and why others could not, or not from all data."""

    row: dict[str, Any] = field(default_factory=dict)
    problem: str = ""


NOT_SCORED: Final = Scored()


def score_compiled(data: Data, compiled: bytes, *, where: str) -> Scored:
    """The accuracy of a compiled file with its interval."""

    def asked() -> tuple[Form, Wanted]:
        return compiled_form(compiled, where=where)

    score, problem = _score(asked, data, where)
    if score is None:
        return Scored(problem=problem)
    low, high = score.interval()
    shares = {"accuracy": score.accuracy, "accuracy_low": low, "accuracy_high": high}
    return Scored({**{name: round(share, 6) for name, share in shares.items()}, "samples": score.total}, problem)


def score_float(data: Data, loaded: Loaded, *, where: str) -> Scored:
    """The accuracy of a PyTorch model before it is quantized; nothing where it came with scales."""
    if not loaded.is_module:
        return NOT_SCORED
    score, problem = _score(lambda: (torch_form("float", loaded.model, loaded), wanted_by(loaded)), data, where)
    return Scored({} if score is None else {"float_accuracy": round(score.accuracy, 6)}, problem)


def check_scoring(data: Data, source: str) -> None:
    """Refuse early what cannot be the data of this model."""
    if data.given != ZOO:
        check_data(data.given, where=source)
    elif find(source).kind != "zoo":
        raise OptionError(
            f"it is no network of the zoo, and --data is {ZOO}",
            where=source,
            hint="give the data for it in a TOML file",
        )


def data_identity(data: Data, code_of: Callable[[str], str]) -> str:
    """A digest: files by name, size and time, since data may be large; a generator by its code; the zoo's is in the package."""
    given = str(data.given)
    parts: list[Any] = [given, data.limit, data.mean, data.std]
    if given != ZOO:
        files = files_of(given)
        parts += [[str(file), file.stat().st_size, file.stat().st_mtime_ns] for file in files if file.is_file()]
        if not files:
            parts.append(code_of(given.partition(":")[0]))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _score(asked: Callable[[], tuple[Form, Wanted]], data: Data, where: str) -> tuple[Score | None, str]:
    """The score, if there is one, and what is wrong with the data, if anything is."""
    own = Data(None, data.limit) if data.given == ZOO else data
    try:
        form, wanted = asked()
        found = score_shards([form], own.shards(wanted, zoo=where), limit=data.limit)
    except OpenNeutronError as error:
        return None, f"no accuracy: {error}"
    return found.scores[0], f"left out: {'; '.join(found.failures)}" if found.failures else ""
