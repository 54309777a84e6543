"""The flags of `aot_neutron_compile`: every one has an effect that can be seen, or an error that says why not."""

from __future__ import annotations

import contextlib
import io
import logging
import subprocess
import sys
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import torch

from openneutron import zoo
from openneutron.compat.aot_neutron_compile import ALIASES, main, parser
from openneutron.errors import OptionError
from openneutron.executorch.run.runtime import load_program
from openneutron.machine.native import library_path
from openneutron.microcode.payload import Payload, parse_payload
from openneutron.microcode.pte import Plan, read_plan

QUANTIZE = "quantized_decomposed::quantize_per_tensor.out"


@dataclass(frozen=True)
class Outcome:
    """What one run printed and wrote."""

    folder: Path
    out: str
    data: bytes
    plan: Plan


Compiled = Callable[..., Outcome]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """Runs the script on a small model, in a folder of its own; a run that several tests want happens once."""

    @cache
    def run(*flags: str, model: str = "autoencoder") -> Outcome:
        folder, out = tmp_path_factory.mktemp("run"), io.StringIO()
        with contextlib.chdir(folder), contextlib.redirect_stdout(out):
            assert main(["-m", model, *flags]) == 0
        stem = f"{model}_nxp_delegate" if {"-d", "--delegate"} & set(flags) else model
        data = (folder / f"{stem}.pte").read_bytes()
        return Outcome(folder, out.getvalue(), data, read_plan(data, where=stem))

    return run


def payloads(plan: Plan) -> list[Payload]:
    return [parse_payload(data, where=name) for name, data in plan.payloads]


def test_names_of_upstreams_script_and_of_the_zoo_are_known() -> None:
    assert ALIASES["cifar10"] == "cifarnet" and ALIASES["mobilenetv2"] == "mobilenet_v2"
    assert ALIASES["mlperf_tiny_image_classification"] == "resnet8"
    assert set(ALIASES.values()) <= set(zoo.names())
    usage = parser().format_help()
    assert all(name in usage for name in (*ALIASES, *zoo.names()))


def test_cifar10_as_a_process_writes_the_program_and_its_accuracy(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "openneutron.compat.aot_neutron_compile", "-m", "cifar10", "-d", "-q", "-t"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["cifar10_nxp_delegate.pte"]
    accuracy = float(done.stdout.rpartition("Accuracy: ")[2])
    assert accuracy >= 0.8
    assert "for imxrt700" in done.stdout and done.stderr == ""


def test_without_delegate_or_quantize_the_program_computes_in_float(compiled: Compiled) -> None:
    plan = compiled().plan
    assert not plan.delegates and QUANTIZE not in plan.operators and plan.inputs[0].dtype == "float32"


def test_quantize_alone_keeps_everything_on_the_cpu(compiled: Compiled) -> None:
    made = compiled("--quantize")
    assert not made.plan.delegates and made.plan.operators[QUANTIZE] > 1
    assert "nothing is delegated without -d" in made.out and "operators_not_to_delegate" not in made.out


def test_delegate_leaves_the_border_to_the_cpu(compiled: Compiled) -> None:
    plan = compiled("-d", "-q").plan
    assert plan.delegates == {"NeutronBackend": 1} and plan.operators[QUANTIZE] == 1


def test_remove_quant_io_ops_gives_an_int8_program(compiled: Compiled) -> None:
    made = compiled("-d", "-q", "-r")
    assert made.plan.operators == {}
    assert [value.dtype for value in (*made.plan.inputs, *made.plan.outputs)] == ["int8", "int8"]
    (y,) = load_program(made.data).run(torch.zeros(1, 640, dtype=torch.int8))
    assert y.dtype == torch.int8 and y.unique().numel() > 10


def test_a_channels_last_int8_program_is_as_accurate(compiled: Compiled) -> None:
    flags = ("-d", "-q", "-t", "--remove-quant-io-ops", "--use_channels_last_dim_order")
    made = compiled(*flags, model="cifar10")
    assert float(made.out.rpartition("Accuracy: ")[2]) >= 0.8
    assert made.plan.inputs[0].channels_last and made.plan.inputs[0].dtype == "int8"


def test_operators_not_to_delegate(compiled: Compiled) -> None:
    made = compiled("-d", "-q", "--operators_not_to_delegate", "aten::addmm", "aten::relu")
    assert not made.plan.delegates and "operators_not_to_delegate names it (aten::addmm)" in made.out


def test_target(compiled: Compiled) -> None:
    made = compiled("-d", "-q", "--target", "mcxn94x")
    assert "mcxn94x" in made.out
    assert [p.identity and p.identity.target for p in payloads(made.plan)] == ["mcxn94x"]


@pytest.mark.full  # trains CifarNet
def test_use_random_dataset_and_use_qat_give_other_parameters(compiled: Compiled) -> None:
    made = [compiled("-d", "-q", *extra) for extra in ((), ("--use_random_dataset",), ("--use_qat",))]
    assert all(one.plan.delegates == {"NeutronBackend": 1} for one in made)
    assert len({one.data for one in made}) == 3
    model = zoo.load("autoencoder")
    (x,) = model.example_inputs
    with torch.no_grad():
        wanted = model.model(x)
    (trained,) = load_program(made[2].data).run(x)
    assert (trained - wanted).square().mean() < 0.05 * wanted.square().mean()


def test_dataset_path_gives_the_calibration_samples(compiled: Compiled, tmp_path: Path) -> None:
    samples = tmp_path / "samples.pt"
    torch.save([(batch[0][0], 0) for batch in zoo.load("autoencoder").calibration], samples)
    assert compiled("-d", "-q", "-dst", str(samples)).data == compiled("-d", "-q").data
    torch.save(torch.full((2, 640), 3.0), samples)
    assert compiled("-d", "-q", "--dataset_path", str(samples)).data != compiled("-d", "-q").data


@pytest.mark.full  # compiles CifarNet once more
def test_use_profiling_asks_for_a_profile(compiled: Compiled) -> None:
    versions = [payloads(compiled("-d", "-q", *extra).plan)[0].payload_version for extra in ((), ("--use_profiling",))]
    assert versions == [0, 1]


def test_dump_kernel_selection_code(compiled: Compiled) -> None:
    made = compiled("-d", "-q", "--dump_kernel_selection_code")
    code = (made.folder / "autoencoder_nxp_delegate_kernel_selection.c").read_text()
    assert "neutronKernels[" in code and "fully_connected" in code
    assert len(list(made.folder.iterdir())) == 2


@pytest.mark.full  # compiles CifarNet once more
def test_fetch_constants_to_sram_reserves_memory_for_them(compiled: Compiled) -> None:
    assert "0 prefetch" in compiled("-d", "-q").out
    assert " + 0 prefetch" not in compiled("-d", "-q", "--fetch_constants_to_sram").out


def test_visualize_writes_a_page_and_shows_it_on_request(compiled: Compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    stored = compiled("-d", "-q", "--visualize")
    assert (stored.folder / "autoencoder_nxp_delegate.html").read_text().startswith("<!doctype html>") and not opened
    shown = compiled("-d", "-q", "--visualize", "show")
    assert opened == [(shown.folder / "autoencoder_nxp_delegate.html").as_uri()]


def test_debug_tells_stages_and_verdicts(compiled: Compiled, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "openneutron"):
        compiled("-d", "-q", "--debug")
    assert "exporting" in caplog.text and "aten.addmm.default aten_addmm_default: partition 0" in caplog.text
    with pytest.raises(OptionError):
        main(["-m", "autoencoder", "-d", "--debug"])


def test_so_library_is_loaded(compiled: Compiled) -> None:
    compiled("-d", "-q", "-s", str(library_path()))
    assert str(library_path()) in {str(path) for path in torch.ops.loaded_libraries}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["-m", "cifar11", "-d", "-q"], "the zoo has no model 'cifar11'"),
        (["-m", "cifar10", "-d", "-q", "--target", "imxrt800"], "unknown target 'imxrt800'"),
        (["-m", "cifar10", "-d"], "-d without -q delegates nothing"),
        (["-m", "cifar10", "-q", "--use_profiling"], "--use_profiling has no effect without -d"),
        (
            ["-m", "cifar10", "-q", "--dump_kernel_selection_code"],
            "--dump_kernel_selection_code has no effect without -d",
        ),
        (["-m", "cifar10", "-q", "--fetch_constants_to_sram"], "--fetch_constants_to_sram has no effect without -d"),
        (
            ["-m", "cifar10", "-q", "--operators_not_to_delegate", "aten::mm"],
            "--operators_not_to_delegate has no effect",
        ),
        (["-m", "cifar10", "--use_qat"], "--use_qat has no effect without -q"),
        (["-m", "cifar10", "--use_random_dataset"], "--use_random_dataset has no effect without -q"),
        (["-m", "cifar10", "-dst", "gone.pt"], "--dataset_path has no effect without -q"),
        (["-m", "cifar10", "-q", "-dst", "gone.pt"], "gone.pt: there is no such file"),
        (["-m", "cifar10", "-q", "-dst", "text.so"], "text.so: it is not what torch.save writes"),
        (["-m", "cifar10", "-q", "-dst", "a.pt", "--use_random_dataset"], "are two sources"),
        (["-m", "cifar10", "-r"], "--remove-quant-io-ops has no effect without -q"),
        (["-m", "cifar10", "-d", "-q", "-s", "gone.so"], "gone.so: there is no such file"),
        (["-m", "cifar10", "-d", "-q", "-s", "text.so"], "text.so: the library cannot be loaded"),
        (["-m", "autoencoder", "-d", "-q", "-t"], "--test: autoencoder has no labelled test images"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_flags_are_one_sentence_and_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], flags: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.so").write_text("no library")
    assert main(flags) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.err.count("\n") == 1 and captured.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["text.so"]
