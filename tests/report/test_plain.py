from __future__ import annotations

from dataclasses import replace

from openneutron.report.facts import facts, title
from openneutron.report.plain import TOP_KERNELS, report_text
from tests.report.samples import report as sample


def test_it_has_every_fact_and_the_costliest_kernels() -> None:
    report = sample()
    text = report_text(report)
    assert text.startswith(title(report))
    for label, sentence in facts(report):
        assert label in text and sentence in text
    assert all(kernel.kernel in text for kernel in report.kernels[:TOP_KERNELS])
    assert all(line == line.rstrip() for line in text.splitlines())


def test_long_names_are_cut_and_many_kernels_counted() -> None:
    report = sample()
    many = tuple(replace(report.kernels[0], name="n" * 300, node=at) for at in range(TOP_KERNELS + 3))
    text = report_text(replace(report, kernels=many))
    assert "and 3 more" in text and max(map(len, text.splitlines())) < 160


def test_what_stays_on_the_cpu_is_told_with_its_reason() -> None:
    report = sample()
    left = [node for node in report.nodes if not node.delegated] or [op for op in report.operators if not op.converted]
    text = report_text(report)
    assert bool(left) == ("Left on the CPU" in text)
    assert all(one.reason in text for one in left)
