from __future__ import annotations

from openneutron.report.facts import Left, costliest, facts, left_on_cpu, share, title
from openneutron.report.model import Report
from tests.report.samples import report


def test_every_fact_carries_its_numbers() -> None:
    assert dict(facts(report())) == {
        "nodes": "1 delegated, 3 left on the CPU",
        "operators": "2 of 3 LiteRT operators in 1 NeutronGraph",
        "work": "6,400 MACs",
        "estimate": "250 cycles, 0.001 ms on imxrt700, open schedule",
        "peak memory": "1,536 bytes (512 I/O + 1,000 scratch + 24 prefetch)",
        "flash": "640 bytes of weights, 400 of microcode",
        "files": "small.pte 2,048 bytes",
        "seconds": "export 1.50, compiler 0.25",
        "note": "1 border copy of 256 bytes",
    }


def test_what_a_report_does_not_know_is_left_out() -> None:
    assert facts(Report(target="imxrt700")) == [("operators", "0 of 0 LiteRT operators in 0 NeutronGraphs")]


def test_leftovers_are_gathered_by_operator_and_reason() -> None:
    assert left_on_cpu(report()) == [
        Left("aten.sin", ("a", "b"), "operator sin has no kernel", "use tanh"),
        Left("aten.<cos>", ("c",), "type is [float32]", ""),
    ]


def test_a_report_without_nodes_tells_its_leftovers_by_operators() -> None:
    import dataclasses

    bare = dataclasses.replace(report(), nodes=())
    assert left_on_cpu(bare) == [Left("SIN", ("a",), "operator SIN has no kernel", "use TANH")]


def test_the_costliest_kernel_comes_first_with_its_share() -> None:
    kernels = costliest(report(), 1)
    assert [kernel.kernel for kernel in kernels] == ["conv2d"]
    assert share(kernels[0], report()) == 0.8


def test_the_title_names_model_target_and_converter() -> None:
    assert title(report()) == "small[1].pt for imxrt700 (open 0.1.0)"


def test_what_stays_on_the_cpu_names_the_lines_of_the_model() -> None:
    left = Left("aten.sin", ("a", "b", "c"), "no kernel", "", ("net.py:3", "", "net.py:9"))
    assert left.where(2) == "a (net.py:3), b and 1 more"
    assert left.where(3) == "a (net.py:3), b, c (net.py:9)"
