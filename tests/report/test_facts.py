from __future__ import annotations

from openneutron.report.facts import CpuGroup, costliest, facts, left_on_cpu, leftovers_of, share, title
from openneutron.report.model import Operator, Report
from tests.report.samples import report


def test_every_fact_carries_its_numbers() -> None:
    assert dict(facts(report())) == {
        "nodes": "1 of 4 on the NPU",
        "operators": "2 of 3 LiteRT operators in 1 NeutronGraph",
        "work": "6,400 MACs",
        "estimate": "250 cycles, 0.0008 ms on imxrt700, open schedule",
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
        CpuGroup("aten.sin", ("a", "b"), "operator sin has no kernel", "use tanh"),
        CpuGroup("aten.<cos>", ("c",), "type is [float32]", ""),
    ]


def test_a_report_without_nodes_tells_its_leftovers_by_operators() -> None:
    import dataclasses

    bare = dataclasses.replace(report(), nodes=())
    assert left_on_cpu(bare) == [CpuGroup("SIN", ("a",), "operator SIN has no kernel", "use TANH")]


def test_the_costliest_kernel_comes_first_with_its_share() -> None:
    kernels = costliest(report(), 1)
    assert [kernel.kernel for kernel in kernels] == ["conv2d"]
    assert share(kernels[0], report()) == 0.8


def test_the_title_names_model_target_and_converter() -> None:
    assert title(report()) == "small[1].pt for imxrt700 (open 0.1.0)"


def test_what_stays_on_the_cpu_names_the_lines_of_the_model() -> None:
    left = CpuGroup("aten.sin", ("a", "b", "c"), "no kernel", "", ("net.py:3", "", "net.py:9"))
    assert left.where(2) == "a (net.py:3), b and 1 more"
    assert left.where(3) == "a (net.py:3), b, c (net.py:9)"


def _left(index: int, code: str, reason: str, *, inputs: tuple[int, ...] = (0,), converted: bool = False) -> Operator:
    return Operator(index, code, f"t{index}", converted, reason, inputs=inputs)


def test_a_terminal_tells_reasons_once_and_the_frequent_ones_first() -> None:
    ops = (
        _left(0, "CONV_2D", "", converted=True, inputs=()),
        _left(1, "SIN", "operator SIN has no kernel"),
        *(_left(at, "ADD", f"tensor 't{at}' is int64; it must be INT8") for at in range(2, 6)),
        _left(6, "MUL", "tensor 'x' is int64; it must be INT8"),
        _left(7, "QUANTIZE", "tensor 'input' is float32", inputs=()),
        _left(8, "DEQUANTIZE", "it makes float values"),
    )
    found = leftovers_of(Report(operators=ops))
    assert [(group.operator, len(group.names)) for group in found.groups] == [("ADD x4, MUL", 5), ("SIN", 1)]
    assert found.groups[0].reason == "a tensor is int64; it must be INT8"
    assert (found.hidden, found.border) == (0, 2)
    assert leftovers_of(Report(operators=ops), 1).more.startswith("and 1 more reason (--all shows them)")


def test_a_border_alone_is_no_news() -> None:
    ops = (_left(0, "QUANTIZE", "x", inputs=()), _left(1, "CONV_2D", "", converted=True), _left(2, "DEQUANTIZE", "y"))
    assert leftovers_of(Report(operators=ops)).groups == () and leftovers_of(Report(operators=ops)).more == ""


def test_a_float_model_is_told_once() -> None:
    ops = tuple(_left(at, "ADD", f"tensor 't{at}' is float32; it must be INT8") for at in range(5))
    (told,) = leftovers_of(Report(operators=ops)).groups
    assert told.operator == "ADD x5" and "this model is float32" in told.reason
