"""The seam to NXP's SDK, against a fake one that works, crashes, hangs, leaves operators out or permutes outputs."""

from __future__ import annotations

import json
import os
import pickle
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from openneutron.convert import convert
from openneutron.errors import FormatError, OptionError
from openneutron.litert import read_model
from openneutron.nxp.result import NO_CYCLES
from openneutron.nxp.seam import GET_SDK, SdkError, SdkMissingError, SdkOptionError, convert_with_sdk, sdk_options
from openneutron.options import Options
from openneutron.result import Result
from tests.compat.nxp_file import VERSION_WORD
from tests.compat.samples import two_outputs, with_custom_operator

FAKE = Path(__file__).parents[1] / "compat" / "fake_sdk"
NXP = Options(target="imxrt700", converter="nxp", source="model.tflite", timeout_seconds=60)


@pytest.fixture(autouse=True)
def sdk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """The fake SDK on the worker's path alone, and a working directory in which nothing may appear."""
    monkeypatch.setenv("PYTHONPATH", f"{FAKE}{os.pathsep}{FAKE.parents[2]}")
    monkeypatch.chdir(tmp_path)
    return monkeypatch


def options_in(log: str) -> dict[str, object]:
    line = next(line for line in log.splitlines() if line.startswith("options "))
    return json.loads(line.removeprefix("options "))


def test_a_converted_model_comes_back_unchanged_with_log_and_report(tmp_path: Path) -> None:
    result = convert(two_outputs(), NXP)
    graph = read_model(result.model).main
    assert [op.label for op in graph.operators] == ["NeutronGraph"]
    assert "Operator conversion ratio" in result.log
    report = result.report
    assert (report.converter, report.target, report.converter_version) == ("nxp", "imxrt700", "9.8.7+0X1234abcd")
    assert report.notes[0] == NO_CYCLES
    assert "numMacs 8" in report.notes[1]
    totals = report.totals
    assert (totals.scratch_bytes, totals.weight_bytes, totals.microcode_bytes) == (256, 64, 108)
    assert (totals.operators_total, totals.operators_converted, totals.neutron_graphs) == (3, 3, 1)
    assert totals.io_bytes == 8 * 8 * 3 + 8 * 8 * 8 + 4 * 4 * 8
    assert totals.peak_bytes == totals.io_bytes + 256
    assert totals.cycles == 0
    assert all(op.graph == 0 for op in report.operators)
    assert list(tmp_path.iterdir()) == []


def test_the_parent_never_imports_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "eiq_neutron_sdk"]:
        monkeypatch.delitem(sys.modules, name)  # of another test in this process
    convert_with_sdk(two_outputs(), NXP)
    assert "eiq_neutron_sdk" not in sys.modules


def test_the_newer_spelling_is_used_where_it_exists(sdk: pytest.MonkeyPatch) -> None:
    assert "compileModel was called" not in convert_with_sdk(two_outputs(), NXP).log
    sdk.setenv("FAKE_SDK_SPELLING", "compiler")
    assert "compileModel was called" in convert_with_sdk(two_outputs(), NXP).log


def test_an_sdk_with_neither_spelling_is_named(sdk: pytest.MonkeyPatch) -> None:
    sdk.setenv("FAKE_SDK_SPELLING", "neither")
    with pytest.raises(
        SdkMissingError, match=r"has no neutron_compiler.compileModel or neutron_converter.convertModel"
    ):
        convert_with_sdk(two_outputs(), NXP)


def test_older_sdks_have_the_figures_on_the_target(sdk: pytest.MonkeyPatch) -> None:
    sdk.setenv("FAKE_SDK_FIELDS", "direct")
    assert "numUnits 1, numPipes 8, numMacs 8, hwVersion 2" in convert_with_sdk(two_outputs(), NXP).report.notes[1]


def test_every_option_reaches_the_converter() -> None:
    given = replace(
        NXP,
        fetch_constants_to_sram=True,
        use_profiling=True,
        dump_kernel_selection_code=True,
        passes_off=("MergeTranspose", "FoldPad"),
        minimum_operators_per_graph=4,
        extra_flags=("--verbose", "dumpAfterImport=off"),
    )
    assert options_in(convert_with_sdk(two_outputs(), given).log) == {
        "minNumOpsPerGraph": 4,
        "excludeGraphPasses": "MergeTranspose,FoldPad",
        "fetchConstantsToSRAM": True,
        "dumpAfterImport": False,
        "verbose": True,
        "dumpKernelSelectionCode": True,
        "useProfiling": True,
    }


def test_without_options_small_graphs_are_still_converted() -> None:
    assert options_in(convert_with_sdk(two_outputs(), NXP).log)["minNumOpsPerGraph"] == 1


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("turbo=9", "has no option 'turbo'.*its options are .*minNumOpsPerGraph.*verbose"),
        ("verbose=perhaps", "verbose is 'perhaps'.*true or false"),
        ("minNumOpsPerGraph=many", "minNumOpsPerGraph is 'many'.*whole number"),
    ],
)
def test_wrong_extra_flags_are_refused(flag: str, message: str) -> None:
    with pytest.raises(SdkOptionError, match=message):
        convert_with_sdk(two_outputs(), replace(NXP, extra_flags=(flag,)))


def test_a_flag_that_names_nothing_is_refused_before_the_sdk_starts() -> None:
    with pytest.raises(OptionError, match="'--=3' names no option"):
        sdk_options(replace(NXP, extra_flags=("--=3",)))


def test_an_attribute_this_sdk_lacks_is_an_error_only_when_asked_for(sdk: pytest.MonkeyPatch) -> None:
    sdk.setenv("FAKE_SDK_OPTIONS", "old")
    assert convert_with_sdk(two_outputs(), NXP).report.totals.neutron_graphs == 1
    with pytest.raises(SdkOptionError, match="has no option 'useProfiling'"):
        convert_with_sdk(two_outputs(), replace(NXP, use_profiling=True))


@pytest.mark.parametrize(
    "change", [{"optimize": "max"}, {"fit_bytes": 1000}, {"operators_not_to_delegate": ("ADD",)}], ids=str
)
def test_what_their_converter_has_no_word_for_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(OptionError, match=f"cannot be given {next(iter(change))}"):
        convert_with_sdk(two_outputs(), replace(NXP, **change))


def test_a_time_out_must_be_positive() -> None:
    with pytest.raises(OptionError, match="time-out is 0 seconds"):
        convert_with_sdk(two_outputs(), replace(NXP, timeout_seconds=0))


def test_an_unknown_target_lists_those_of_the_sdk() -> None:
    with pytest.raises(
        SdkOptionError, match=r"does not know the target 'imx1'\. Hint: its targets are imxrt700, imx943"
    ):
        convert_with_sdk(two_outputs(), replace(NXP, target="imx1"))


def test_a_target_without_public_figures_works_with_their_sdk() -> None:
    assert convert_with_sdk(two_outputs(), replace(NXP, target="imx943")).report.target == "imx943"


def test_a_missing_sdk_says_how_to_get_it_and_what_works_without(sdk: pytest.MonkeyPatch) -> None:
    sdk.setenv("PYTHONPATH", "")
    with pytest.raises(SdkMissingError) as caught:
        convert_with_sdk(two_outputs(), NXP)
    assert "eiq_neutron_sdk is not installed" in str(caught.value)
    assert GET_SDK in str(caught.value) and "--converter open works without it" in GET_SDK


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("broken", "cannot be imported: libfake.so"),
        ("dependency", "needs 'a_package_that_is_not_there'"),
        ("ours", "OpenNeutron's compatibility package, not NXP's"),
    ],
)
def test_an_sdk_that_cannot_be_used_says_why(sdk: pytest.MonkeyPatch, state: str, message: str) -> None:
    sdk.setenv("FAKE_SDK_IMPORT", state)
    with pytest.raises(SdkMissingError, match=message):
        convert_with_sdk(two_outputs(), NXP)


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("crash", r"model.tflite: NXP's converter crashed \(SIGSEGV\)"),
        ("exit", "ended with status 3 before it was done"),
        ("raise", "NXP's converter failed: RuntimeError: Tensor data type invalid!"),
        ("nonsense", "as NXP's converter returned it, byte 4: the file identifier"),
        ("not bytes", "returned NoneType, not the bytes of a model"),
        ("renamed", r"its outputs are not the model's: missing \['first'\], unexpected \['something_else'\]"),
        ("retyped", r"'first' of its outputs is int8 \[1, 8, 8, 16\], the model's is int8 \[1, 8, 8, 8\]"),
    ],
)
def test_failures_carry_the_log(sdk: pytest.MonkeyPatch, mode: str, message: str) -> None:
    sdk.setenv("FAKE_SDK_MODE", mode)
    with pytest.raises(SdkError, match=message) as caught:
        convert_with_sdk(two_outputs(), NXP)
    assert "target imxrt700" in caught.value.log
    assert "target imxrt700" in str(caught.value)


def test_a_traceback_of_the_sdk_is_in_the_log_not_in_the_sentence(sdk: pytest.MonkeyPatch) -> None:
    sdk.setenv("FAKE_SDK_MODE", "raise")
    with pytest.raises(SdkError) as caught:
        convert_with_sdk(two_outputs(), NXP)
    assert "Traceback" in caught.value.log and "Traceback" not in caught.value.message


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_hang_is_stopped_with_all_its_processes(sdk: pytest.MonkeyPatch, tmp_path: Path) -> None:
    child = tmp_path / "child"
    sdk.setenv("FAKE_SDK_MODE", "hang")
    sdk.setenv("FAKE_SDK_CHILD", str(child))
    for seconds in (4, 30, 200):  # a busy machine may need more to begin
        with pytest.raises(SdkError, match=f"did not finish within {seconds} seconds and was stopped") as caught:
            convert_with_sdk(two_outputs(), replace(NXP, timeout_seconds=seconds))
        if child.exists() and child.read_text():
            break
    assert "target imxrt700" in caught.value.log
    pid = int(child.read_text())
    deadline = time.monotonic() + 60
    while _is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _is_running(pid)


def test_errors_travel_between_processes(sdk: pytest.MonkeyPatch) -> None:
    error = SdkError("it failed", where="model.tflite", hint="try again", log="line 1\nline 2")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.log, copy.where) == (str(error), error.log, error.where)


def test_an_operator_left_out_is_data_in_the_report(sdk: pytest.MonkeyPatch) -> None:
    sdk.setenv("FAKE_SDK_MODE", "leftover")
    report = convert_with_sdk(two_outputs(), NXP).report
    assert [(op.code, op.converted, op.reason_code) for op in report.operators] == [
        ("CONV_2D", True, ""),
        ("RELU", True, ""),
        ("MAX_POOL_2D", False, "nxp_left_out"),
    ]
    assert report.totals.operators_converted == 2


def test_an_operator_left_out_gets_the_reason_of_the_known_limits(sdk: pytest.MonkeyPatch) -> None:
    sdk.setenv("FAKE_SDK_MODE", "leftover")
    left = convert_with_sdk(with_custom_operator(), NXP).report.operators[1]
    assert (left.code, left.converted, left.reason_code) == ("Mystery", False, "nxp_unknown_operator")


def test_nothing_converted_is_reported_as_such(sdk: pytest.MonkeyPatch) -> None:
    sdk.setenv("FAKE_SDK_MODE", "nothing")
    totals = convert_with_sdk(two_outputs(), NXP).report.totals
    assert (totals.neutron_graphs, totals.operators_converted, totals.peak_bytes) == (0, 0, 0)


def test_permuted_outputs_are_restored_by_name(sdk: pytest.MonkeyPatch) -> None:
    sdk.setenv("FAKE_SDK_MODE", "permuted")
    graph = read_model(convert_with_sdk(two_outputs(), NXP).model).main
    assert [graph.tensors[t].name for t in graph.outputs] == ["first", "second"]
    # The microcode numbers its outputs, so the operator keeps its own order.
    assert [graph.tensors[t].name for t in graph.operators[0].outputs[:2]] == ["second", "first"]


def test_profiling_uses_the_other_layout_of_the_header() -> None:
    report = convert_with_sdk(two_outputs(), replace(NXP, use_profiling=True)).report
    assert (report.totals.scratch_bytes, report.totals.neutron_graphs) == (256, 1)


def test_kernel_selection_is_a_return_value_and_parallel_exports_do_not_collide(tmp_path: Path) -> None:
    def one(_: int) -> Result:
        return convert_with_sdk(two_outputs(), replace(NXP, dump_kernel_selection_code=True))

    with ThreadPoolExecutor(2) as pool:
        codes = {result.kernel_selection_code for result in pool.map(one, range(2))}
    assert len(codes) == 2 and all(code.startswith("/* selection of process") for code in codes)
    assert list(tmp_path.iterdir()) == []


def test_text_dumps_become_intermediates() -> None:
    result = convert_with_sdk(two_outputs(), replace(NXP, dump_intermediates=True))
    assert result.intermediates == {"after_import.txt": "imported graph\n"}


def test_a_damaged_model_is_refused_before_the_sdk_starts() -> None:
    with pytest.raises(FormatError, match=r"model\.tflite"):
        convert_with_sdk(b"nonsense", NXP)


def test_the_foreign_version_word_is_not_ours() -> None:
    from openneutron.microcode.table import VERSION_WORD as OURS

    assert VERSION_WORD != OURS
