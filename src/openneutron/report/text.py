"""What a report says of a decoder: how fast it writes, what each token reads, and what its speed is bound by.

Example:
    >>> text_notes(report, context=256, cache_bytes=163_840)[0]
    'text: 910 tokens/s (620 to 1,340), estimated in the open schedule; the first token behind a prompt of 64 after 70.3 ms'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from openneutron.report.model import Report

PROMPT: Final = 64  # tokens of the prompt for which the time to the first token is printed


@dataclass(frozen=True)
class Chunk:
    """A method for prompts: how many tokens a call of it takes, and how long."""

    name: str
    tokens: int
    milliseconds: float


def text_notes(report: Report, *, context: int, cache_bytes: int, chunk: Chunk | None = None) -> tuple[str, ...]:
    """Return the notes of a decoder that takes a token a call, with `chunk` several of a prompt.

    There are none for a target without a model of its time.
    """
    whole = report.whole
    if not whole.milliseconds or not context:
        return ()
    rate = f"{1e3 / whole.milliseconds:,.0f} tokens/s"
    if whole.milliseconds_low and whole.milliseconds_high:
        rate += f" ({1e3 / whole.milliseconds_high:,.0f} to {1e3 / whole.milliseconds_low:,.0f})"
    prompt = min(PROMPT, context)
    chunks, rest = divmod(prompt, chunk.tokens) if chunk is not None else (0, prompt)
    first = rest * whole.milliseconds + (chunks * chunk.milliseconds if chunk is not None else 0)
    how = f", {chunk.tokens} tokens a call of {chunk.name}" if chunk is not None and chunks else ""
    return (
        f"text: {rate}, estimated in the open schedule; the first token behind a prompt of {prompt} after "
        f"{first:.1f} ms{how}",
        f"text: a token reads {report.totals.weight_bytes:,} bytes of weights at most, and the cache of {cache_bytes:,} "
        f"bytes: {cache_bytes // context:,} for each of {context:,} positions",
        f"text: {_bounds(report)}",
    )


def _bounds(report: Report) -> str:
    """Return what takes the time, the largest share first."""
    npu = report.whole.npu_milliseconds
    cycles = {
        "the array": sum(one.compute_cycles for one in report.kernels),
        "memory": sum(one.memory_cycles for one in report.kernels),
        "calls of kernels": sum(one.overhead_cycles for one in report.kernels),
    }
    total = max(1, sum(cycles.values()))
    times = {name: npu * count / total for name, count in cycles.items()}
    times["the CPU and the border"] = report.whole.milliseconds - npu
    parts = sorted(times.items(), key=lambda one: -one[1])
    shares = [f"{name} {time / report.whole.milliseconds:.0%}" for name, time in parts]
    return f"bound by {parts[0][0]}: {', '.join(shares)} of the time"
