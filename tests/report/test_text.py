"""What a report says of a decoder follows from its times, its kernels and its cache."""

from __future__ import annotations

from dataclasses import replace

from openneutron.report.model import Kernel, Report, Totals, Whole
from openneutron.report.text import Chunk, text_notes


def report() -> Report:
    kernel = Kernel(0, 0, "fully_connected", "a", (0,), (1, 8), 64, 1, 100, 10, 60, 30, 64)
    whole = Whole(npu_milliseconds=3.0, cpu_milliseconds=1.0, milliseconds_low=2.0, milliseconds_high=8.0)
    return Report("imxrt700", "open", "", "m", Totals(weight_bytes=1234), kernels=(kernel,), whole=whole)


def test_speed_bytes_and_what_bounds_it() -> None:
    speed, reads, bound = text_notes(report(), context=256, cache_bytes=5120)
    assert "250 tokens/s (125 to 500)" in speed and "open schedule" in speed and "prompt of 64 after 256.0 ms" in speed
    assert "1,234 bytes of weights" in reads and "5,120 bytes: 20 for each of 256 positions" in reads
    assert "bound by memory: memory 45%, the CPU and the border 25%, calls of kernels 22%, the array 8%" in bound


def test_prompts_in_chunks_and_what_is_left_of_them() -> None:
    speed, *_ = text_notes(report(), context=256, cache_bytes=5120, chunk=Chunk("prefill", 15, 10.0))
    assert "prompt of 64 after 56.0 ms, 15 tokens a call of prefill" in speed  # 4 chunks and 4 tokens of 4 ms
    assert "after 48.0 ms" in text_notes(report(), context=12, cache_bytes=48, chunk=Chunk("prefill", 15, 10.0))[0]


def test_a_short_context_and_no_decoder() -> None:
    assert "prompt of 12 after 48.0 ms" in text_notes(report(), context=12, cache_bytes=48)[0]
    assert text_notes(report(), context=0, cache_bytes=48) == ()
    assert text_notes(replace(report(), whole=Whole()), context=12, cache_bytes=48) == ()
