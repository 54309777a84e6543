from __future__ import annotations

import dataclasses

from openneutron.report.html.advice import advice
from openneutron.report.html.pareto import pareto
from openneutron.report.html.roofline import roofline
from openneutron.report.model import Choice, Kernel, Report, Totals, WhatIf

BASE = Report(
    target="imxrt700",
    totals=Totals(cycles=1000, milliseconds=1.0, peak_bytes=5000, scratch_bytes=4000, neutron_graphs=1),
    pareto=(Choice(0, 4000, 990), Choice(0, 9000, 900)),
)


def what_if(change: str, cycles: int, peak: int, target: str = "imxrt700", proof: str = "compiled") -> WhatIf:
    return WhatIf(change, "--x", target, cycles, cycles / 1000, peak, proof)


def test_pareto_shows_offers_compiles_and_the_choice_inside_its_frame() -> None:
    found = pareto(dataclasses.replace(BASE, what_ifs=(what_if("more", 950, 8000), what_if("other", 10, 10, "imx95"))))
    assert found is not None
    assert [mark.kind for mark in found.marks] == ["offered", "offered", "proved", "chosen"]
    assert all(found.left < mark.x < found.right and found.top < mark.y < found.bottom for mark in found.marks)
    assert "10,000" not in found.marks[1].tip and "900 cycles" in found.marks[1].tip


def test_without_a_choice_there_is_no_pareto() -> None:
    assert pareto(dataclasses.replace(BASE, pareto=())) is None
    assert pareto(Report()) is None


def test_roofline_has_one_dot_per_kernel_that_multiplies() -> None:
    shape = (1, 4, 4, 8)
    kernels = (
        Kernel(0, 0, "conv2d", "c", (), shape, 64000, 1, 2000, 1800, 100, 100, 500, activation_bytes=300),
        Kernel(1, 0, "lut", "l", (), shape, 0, 1, 50, 0, 50, 0, 256, activation_bytes=300),
    )
    found = roofline(dataclasses.replace(BASE, kernels=kernels))
    assert found is not None and len(found.marks) == 1
    assert "50% of the array" in found.marks[0].tip and "80 MACs per byte" in found.marks[0].tip
    assert [line.kind for line in found.lines] == ["roof", "slope weights", "slope activations"][: len(found.lines)]
    assert roofline(dataclasses.replace(BASE, kernels=kernels, target="imx943")) is None


def test_advice_is_ranked_by_time_and_says_nothing_twice() -> None:
    found = advice(
        dataclasses.replace(
            BASE,
            what_ifs=(
                what_if("nothing", 1000, 5000),
                what_if("smaller", 1000, 2500),
                what_if("faster", 800, 9000),
                what_if("faster too", 800, 9000),
                what_if("chip", 100, 5000, "imx95"),
                what_if("fewer channels", 900, 5000, proof="priced"),
            ),
        )
    )
    assert [(one.what_if.change, one.verdict) for one in found] == [
        ("faster", "faster"),
        ("fewer channels", "faster"),
        ("smaller", "smaller"),
        ("chip", "faster"),
    ]
    assert advice(Report()) == []


def test_advice_counts_what_accuracy_gains_and_knows_what_does_not_help() -> None:
    finer = dataclasses.replace(what_if("finer", 1000, 5000), output_sqnr=33.0)
    found = advice(dataclasses.replace(BASE, output_sqnr=30.0, what_ifs=(what_if("worse", 1200, 9000), finer)))
    assert [(one.what_if.change, one.verdict, one.helps, one.accuracy) for one in found] == [
        ("finer", "finer", True, 3.0),
        ("worse", "slower", False, 0.0),
    ]
