"""What does not fit the chip is told, with how much too much it is."""

from __future__ import annotations

from dataclasses import replace

from openneutron.report.fits import shortfalls, warnings_of
from openneutron.report.model import NodeVerdict, Report, Totals, Whole

FITS = Report(target="mcxn94x", totals=Totals(peak_bytes=500_000), whole=Whole("neutron", arena_bytes=500_000))


def test_ram_of_the_whole_program_counts() -> None:
    assert shortfalls(FITS) == []
    large = replace(FITS, whole=Whole("neutron", arena_bytes=500_000, delegate_bytes=100_000))
    (ram,) = shortfalls(large)
    assert ram.memory == "RAM" and ram.needed - ram.there == 600_000 - 524_288
    assert "75,712 too many (500,000 of ExecuTorch's arena, 100,000 of delegates)" in str(ram)


def test_flash_counts_too_and_a_litert_file_has_only_graphs() -> None:
    (flash,) = shortfalls(replace(FITS, files={"pte": 3_000_000}))
    assert flash.memory == "flash" and flash.there == 2_097_152
    (ram,) = shortfalls(Report(target="mcxn94x", totals=Totals(peak_bytes=600_000)))
    assert "largest graph" in ram.taken_by
    assert shortfalls(Report(target="a chip of yours", totals=Totals(peak_bytes=1 << 40))) == []


def test_a_board_may_have_flash_of_its_own() -> None:
    large = replace(FITS, files={"pte": 3_000_000})
    assert shortfalls(replace(large, flash_bytes=16 << 20)) == []
    (flash,) = shortfalls(replace(large, flash_bytes=1 << 20))
    assert flash.there == 1 << 20 and "--flash" not in str(flash) and "--flash" in str(shortfalls(large)[0])


def test_weights_are_in_ram_where_the_npu_reads_no_flash() -> None:
    weights = Totals(peak_bytes=1 << 20, weight_bytes=7 << 20)
    (ram,) = shortfalls(Report(target="imxrt700", totals=weights))
    assert ram.needed == 8 << 20 and "cannot read out of flash" in str(ram)
    assert shortfalls(Report(target="imxrt700", totals=replace(weights, prefetch_bytes=1024))) == []


def test_float_inputs_are_named_where_ram_is_short() -> None:
    border = NodeVerdict("quantize", "quantize_per_tensor", False, code="border")
    large = replace(FITS, whole=Whole("neutron", arena_bytes=600_000), nodes=(border,))
    assert "--int8-io" in str(shortfalls(large)[0])


def test_warnings_begin_with_what_does_not_fit() -> None:
    report = replace(FITS, files={"pte": 3_000_000}, warnings=("12 dB",))
    assert [text[:15] for text in warnings_of(report)] == ["it does not fit", "12 dB"]
