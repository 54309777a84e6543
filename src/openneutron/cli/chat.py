"""`openneutron chat`: write text with a compiled language model, on this machine."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openneutron.generation import Generation, Writer
    from openneutron.report.model import Totals


def chat_with_model(
    model: Annotated[Path, typer.Argument(help="A compiled decoder (.pte) that takes a token and its position.")],
    tokenizer: Annotated[
        Path, typer.Option(help="Its tokenizer: a tokenizer.json, a .model of SentencePiece, or our own vocabulary.")
    ],
    prompt: Annotated[
        str | None, typer.Option(help="What the text begins with; without it each line of the input is one.")
    ] = None,
    tokens: Annotated[int, typer.Option(metavar="N", min=1, help="Tokens to write at most, for each prompt.")] = 128,
    temperature: Annotated[
        float, typer.Option(metavar="FACTOR", min=0, help="0: the likeliest token; higher is more surprising.")
    ] = 0.0,
    top_p: Annotated[
        float, typer.Option(metavar="SHARE", help="Choose among the tokens that together have this share.")
    ] = 1.0,
    seed: Annotated[int, typer.Option(metavar="SEED", min=0, help="Seed of the choice.")] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print text and figures as JSON, a line for each prompt.")
    ] = False,
) -> None:
    """Write text with a compiled decoder; it streams, and each prompt goes on in the same context.

    Examples:

    openneutron chat decoder.pte --tokenizer vocabulary.json --prompt "the"

    openneutron chat decoder.pte --tokenizer vocabulary.json --prompt "a hat" --tokens 6 --temperature 0.8 --top-p 0.9
    """
    from openneutron.generation import writer_of
    from openneutron.language.sampling import Sampling
    from openneutron.terminal import console

    sampling = Sampling(temperature, top_p)
    writer = writer_of(model, tokenizer)
    estimate = _estimate(model)
    for text in [prompt] if prompt is not None else _lines():
        if writer.decoder.position and not writer.decoder.left:
            writer.decoder.begin()
        made = writer.write(text, tokens=tokens, sampling=sampling, seed=seed)
        if as_json:
            console.put(json.dumps(_plain(text, made, writer, estimate)))
            continue
        print(text, end="")
        for piece in made:
            print(piece, end="", flush=True)
        print()
        console.stdout().print(_figures(made, estimate), style="dim")


def _lines() -> Iterator[str]:
    """Yield prompts from the input until it ends; on a terminal, asked for by a sign."""
    shown = sys.stdin.isatty()
    while True:
        if shown:
            print("> ", end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line.rstrip("\n")


def _estimate(model: Path) -> Totals:
    """Return the estimated time of one token in the open schedule: that of the NPU alone."""
    from openneutron.analyze.profile import Code, profile
    from openneutron.cli.inputs.blocks import blocks_of_file
    from openneutron.files import read_file

    found = blocks_of_file(read_file(model), str(model))
    codes = [Code(one.where, (one.microcode, one.weights, one.kernels), one.program()) for one in found]
    return profile(codes, source=str(model)).totals


def _rates(estimate: Totals) -> tuple[float, float, float]:
    """Return the estimated tokens per second, and the least and the most."""
    times = estimate.milliseconds, estimate.milliseconds_high, estimate.milliseconds_low
    return tuple(1e3 / one if one else 0.0 for one in times)  # type: ignore[return-value]


def _figures(made: Generation, estimate: Totals) -> str:
    rate, least, most = _rates(estimate)
    text = f"{len(made.tokens)} tokens ({made.ended}); {made.tokens_per_second:,.0f} tokens/s in the simulator on this machine"
    if rate:
        text += f"; NPU, open schedule: {rate:,.0f} tokens/s estimated ({least:,.0f} to {most:,.0f})"
    return text


def _plain(prompt: str, made: Generation, writer: Writer, estimate: Totals) -> dict[str, Any]:
    text = made.text
    rate, least, most = _rates(estimate)
    return {
        "prompt": prompt, "text": text, "tokens": len(made.tokens), "ended": made.ended,
        "position": writer.decoder.position, "context": writer.decoder.context,
        "simulated_tokens_per_second": made.tokens_per_second,
        "estimated_tokens_per_second": rate, "estimated_interval": [least, most],
    }  # fmt: skip
