"""`openneutron evaluate --perplexity`: a language model on sequences of tokens, in float and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openneutron.executorch.capture.sources import Source
    from openneutron.language.perplexity import TextScore


def evaluate_text(
    source: Source, data: str | None, tokenizer: str, limit: int, stage: Callable[[str], None], **options: Any
) -> list[TextScore]:
    """Compile a language model and return the scores of its forms; `limit` is the most sequences, 0 for all."""
    from openneutron.analyze.text import score_text
    from openneutron.cli.inputs.loading import compile_loaded
    from openneutron.errors import OptionError

    if source.kind == "tflite":
        raise OptionError(
            "perplexity is for PyTorch models",
            where=source.text,
            hint="give a module whose inputs are a token and its position",
        )
    rows = read_rows(source, data, tokenizer)
    stage("loading the model")
    loaded = source.load()
    if not loaded.is_module:
        raise OptionError("it is quantized already: there is no float model to compare with", where=source.text)
    program = compile_loaded(loaded, stage, **options)
    return score_text(program, loaded, rows[: limit or None], progress=stage)


def read_rows(source: Source, data: str | None, tokenizer: str) -> list[list[int]]:
    """Read sequences of tokens from a file, or take those that a model of the zoo has."""
    from openneutron.errors import OptionError
    from openneutron.language.perplexity import read_sequences
    from openneutron.language.tokenizer import load_tokenizer

    if data is not None:
        return read_sequences(data, tokenizer=load_tokenizer(tokenizer) if tokenizer else None)
    from openneutron import zoo

    found = zoo.load(source.text).test_sequences if source.kind == "zoo" else ()
    if not found:
        raise OptionError(
            "there is no text to measure", where=source.text, hint="give --data tokens.npz, or a .txt with --tokenizer"
        )
    return [list(row) for row in found]


def plain_text_score(one: TextScore, first: TextScore) -> dict[str, Any]:
    """Return a score as a mapping for JSON."""
    return {
        "form": one.name, "perplexity": one.perplexity, "ratio": one.ratio(first), "agreement": one.agreement(first),
        "tokens": one.total, "seconds": one.seconds,
    }  # fmt: skip


def text_table(scores: list[TextScore]) -> Any:
    """Return the scores as a table."""
    from rich.table import Table

    table = Table(header_style="cyan", box=None)
    table.add_column("form")
    for heading in ("perplexity", f"× {scores[0].name}", "same answer", "tokens", "ms per token"):
        table.add_column(heading, justify="right")
    for one in scores:
        table.add_row(
            one.name, f"{one.perplexity:.3f}", f"{one.ratio(scores[0]):.3f}", f"{one.agreement(scores[0]):.2%}",
            f"{one.total:,}", f"{1e3 * one.seconds / max(one.total, 1):.2f}",
        )  # fmt: skip
    return table
