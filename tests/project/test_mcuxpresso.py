"""Applications for MCUXpresso SDK: configured and built against a stand-in of the SDK, run on this machine."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from openneutron.errors import OptionError
from openneutron.project import boards
from openneutron.project.content import Content, make_content
from openneutron.project.mcuxpresso import mcuxpresso_files
from openneutron.project.open_model import OpenModel
from openneutron.project.write import write_files
from tests.project.npu import Pair, answers, pair

STANDIN = Path(__file__).parent / "standins" / "mcuxsdk"
# What the SDK's Kconfig files have, and its eIQ examples for these boards set.
KNOWN = {
    "MCUX_PRJSEG_module.pmic_support", "MCUX_PRJSEG_project.hw_app_project_core_folder", "MCUX_COMPONENT_component.lists",
    "MCUX_COMPONENT_component.lpuart_adapter", "MCUX_COMPONENT_driver.lpflexcomm_lpuart", "MCUX_COMPONENT_driver.port",
    "MCUX_COMPONENT_middleware.eiq.tensorflow_lite_micro.binary", "MCUX_COMPONENT_middleware.eiq.tensorflow_lite_micro.neutron",
}  # fmt: skip


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return pair(tmp_path_factory.mktemp("pair"))


def files_of(small: OpenModel, source: Pair, board: str) -> dict[str, bytes]:
    content = make_content(small, boards.load(board), [], title="small.tflite", command="", npu=source.npu())
    return mcuxpresso_files(content)


def build(files: dict[str, bytes], folder: Path, which: str, board: str) -> Path:
    write_files(files, folder / "made")
    options = ["-S", f"made/{which}", "-B", "build", f"-DSdkRootDirPath={STANDIN}"]
    for words in (["cmake", *options], ["cmake", "--build", "build", "-j", "2"]):
        done = subprocess.run(
            words, cwd=folder, env=os.environ | {"STANDIN_BOARD": board}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "build" / f"small_{which}"


@pytest.mark.full
def test_the_open_runtime_passes(tools: None, small: OpenModel, source: Pair, tmp_path: Path) -> None:
    program = build(files_of(small, source, "frdmmcxn947"), tmp_path, "cpu", "frdmmcxn947")
    done = subprocess.run([program], capture_output=True, text=True, timeout=600)
    assert "2 of 2 samples equal the expected outputs\nself-test: pass\n" in done.stdout.replace("\r", "")


def test_the_sources_that_only_this_platform_has_compile(
    tools: None, small: OpenModel, source: Pair, tmp_path: Path
) -> None:
    """The cheap part of the build with the open runtime: the driver's sources are compiled for Zephyr and bare metal."""
    files = files_of(small, source, "frdmmcxn947")
    write_files(files, tmp_path / "made")
    includes = [f"-I{tmp_path}/made/{name}" for name in ("application", "model", "runtime/include")]
    for name in ("cpu/main.c", "application/console.c", "application/self_test.c"):
        words = [
            "gcc",
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            *includes,
            f"-I{STANDIN}/include",
            "-c",
            f"made/{name}",
        ]
        done = subprocess.run([*words, "-o", "out.o"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("board", ["frdmmcxn947", "mimxrt700evk"])
def test_the_build_with_nxps_library_runs_the_samples(
    tools: None, small: OpenModel, source: Pair, tmp_path: Path, board: str
) -> None:
    program = build(files_of(small, source, board), tmp_path, "npu", board)
    npu = source.npu()
    done = subprocess.run([program], env=answers(tmp_path, npu, npu.exact), capture_output=True, text=True, timeout=600)
    assert "2 of 2 samples as expected\nself-test: pass\n" in done.stdout.replace("\r", "")


@pytest.mark.parametrize("board", ["frdmmcxn947", "mcxn9xxevk", "mimxrt700evk", "frdmimxrt700"])
def test_symbols_and_names_are_the_sdks(small: OpenModel, source: Pair, board: str) -> None:
    files = files_of(small, source, board)
    for which in ("cpu", "npu"):
        lines = [line for line in files[f"{which}/prj.conf"].decode().splitlines() if line and line[0] != "#"]
        found = [re.fullmatch(r"CONFIG_(\S+)=y", line) for line in lines]
        assert all(found) and {one[1] for one in found if one} <= KNOWN
        example = yaml.safe_load(files[f"{which}/example.yml"])[f"small_{which}"]
        assert list(example["boards"]) == [f"{board}@cm33_core0"]
        readme = files["README.md"].decode()
        assert f"west build -p always -b {board} examples/eiq_examples/small/{which} --toolchain armgcc" in readme
    sections = ".modeldata" in files["npu/npu_place.h"].decode()
    assert sections == (boards.load(board).npu_model is not None)


def test_without_a_converted_model_there_is_one_application(small: OpenModel) -> None:
    content = make_content(small, boards.load("mimxrt2660evk"), [], title="small.tflite", command="")
    files = mcuxpresso_files(content)
    assert not [name for name in files if name.startswith("npu/")]
    assert "--config xspi_nor_psram_release" in files["README.md"].decode()
    assert "core_id" not in files["README.md"].decode()


def test_a_board_of_qemus_is_refused(content: Content) -> None:
    with pytest.raises(OptionError, match=r"no board of MCUXpresso SDK.*cmake"):
        mcuxpresso_files(content)
