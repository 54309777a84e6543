from __future__ import annotations

import io

from rich.console import Console

from openneutron.report.render import kernels, leftovers, print_report
from tests.report.samples import report


def text_of(*renderables: object) -> str:
    console = Console(file=io.StringIO(), width=160)
    for one in renderables:
        console.print(one)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_the_whole_report_names_the_figures_and_the_reasons() -> None:
    console = Console(file=io.StringIO(), width=160)
    print_report(report(), console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    for wanted in ("small[1].pt for imxrt700", "250 cycles", "1,536 bytes", "conv2d", "operator sin has no kernel"):
        assert wanted in text


def test_kernels_show_share_and_what_bounds_them() -> None:
    lines = text_of(kernels(report())).splitlines()
    assert lines[2].split() == ["conv2d", "conv", "1x8x8x4", "2", "6,400", "200", "80%", "compute"]
    assert lines[3].split() == ["lut", "relu", "1x8x8x4", "1", "0", "50", "20%", "memory"]


def test_kernels_that_do_not_fit_are_counted() -> None:
    assert "and 1 more" in text_of(kernels(report(), count=1))


def test_brackets_in_names_and_reasons_are_text_not_markup() -> None:
    assert "type is [float32]" in text_of(leftovers(report()))
