"""Zephyr applications: configured and built against a stand-in of Zephyr, run on this machine."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from openneutron.errors import OptionError
from openneutron.project import boards
from openneutron.project.content import Content, make_content
from openneutron.project.open_model import OpenModel
from openneutron.project.write import write_files
from openneutron.project.zephyr import zephyr_files
from tests.project.conftest import command
from tests.project.npu import Pair, answers, pair

STANDIN = Path(__file__).parent / "standins" / "zephyr"
# What Zephyr's and hal_nxp's Kconfig files have of it, and Zephyr's sample for this NPU sets.
KNOWN = {
    "CPP", "STD_CPP17", "REQUIRES_FULL_LIBCPP", "GLIBCXX_LIBCPP", "TENSORFLOW_LITE_MICRO",
    "TENSORFLOW_LITE_MICRO_CMSIS_NN_KERNELS", "TFLM_NXP_NEUTRON", "REQUIRES_FLOAT_PRINTF", "PICOLIBC", "PICOLIBC_IO_FLOAT",
    "LOG", "FPU", "NOCACHE_MEMORY", "MAIN_STACK_SIZE", "OPENNEUTRON_NPU",
}  # fmt: skip


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return pair(tmp_path_factory.mktemp("pair"))


def content_of(small: OpenModel, source: Pair, board: str) -> Content:
    return make_content(small, boards.load(board), [], title="small.tflite", command="", npu=source.npu())


@pytest.fixture(scope="module")
def made(tools: None, small: OpenModel, source: Pair, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("zephyr") / "made"
    write_files(zephyr_files(content_of(small, source, "mimxrt700evk")), folder)
    return folder


def build(folder: Path, name: str, *options: str) -> Path:
    command(["cmake", "-B", name, f"-DZephyr_DIR={STANDIN}", *options], folder)
    command(["cmake", "--build", name, "-j", "2"], folder)
    return folder / name / "app"


def test_the_open_runtime_passes(made: Path) -> None:
    assert "2 of 2 samples equal the expected outputs\nself-test: pass\n" in command([str(build(made, "cpu"))], made)


def test_the_build_with_nxps_library_compares_both_roundings(made: Path, source: Pair, tmp_path: Path) -> None:
    program = build(made, "npu", "-DEXTRA_CONF_FILE=npu.conf")
    npu = source.npu()
    other = tuple(tuple(np.bitwise_xor(array, 1) for array in run) for run in npu.exact)
    for outputs, status, words in (
        (npu.exact, 0, "equals LiteRT's exact values"),
        (npu.silicon, 0, "self-test: pass"),
        (other, 0, "sample 1: output 0 differs from byte 0 on:"),
    ):
        done = subprocess.run(
            [program], env=answers(tmp_path, npu, outputs), capture_output=True, text=True, timeout=600
        )
        assert done.returncode == status and words in done.stdout, done.stdout
    assert "0 of 2 samples as expected\nself-test: fail\n" in done.stdout


def test_what_nxps_build_cannot_do_is_said(made: Path, source: Pair, tmp_path: Path) -> None:
    program = build(made, "npu", "-DEXTRA_CONF_FILE=npu.conf")
    environment = answers(tmp_path, source.npu(), source.npu().exact)
    (tmp_path / "outputs.bin").write_bytes(b"")
    done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=600)
    assert done.stdout.endswith("Invoke failed\nself-test: fail\n")
    (tmp_path / "sizes.txt").write_text("1 7 1 5")
    done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=600)
    assert done.stdout.endswith("an input has another size\nself-test: fail\n")


def test_kconfig_symbols_are_known(small: OpenModel, source: Pair) -> None:
    for board in ("frdmmcxn947", "mcxn9xxevk", "mimxrt700evk"):
        files = zephyr_files(content_of(small, source, board))
        for name in ("prj.conf", "npu.conf"):
            lines = [line for line in files[name].decode().splitlines() if line and line[0] != "#"]
            found = [re.fullmatch(r"CONFIG_([A-Z0-9_]+)=(y|\d+)", line) for line in lines]
            assert all(found) and {one[1] for one in found if one} <= KNOWN
        assert f"west build -p always -b {boards.load(board).zephyr} ." in files["README.md"].decode()


def test_without_a_converted_model_nothing_of_nxps_is_there(small: OpenModel) -> None:
    content = make_content(small, boards.load("mimxrt2660evk"), [], title="small.tflite", command="")
    files = zephyr_files(content)
    assert not [name for name in files if name.startswith("npu")]
    own = {name: data.decode() for name, data in files.items() if not name.startswith(("runtime/", "model/"))}
    assert not [name for name, text in own.items() if re.search(r"tensorflow|NEUTRON_NPU|\{[{%]", text)]


def test_the_readme_builds_flashes_and_listens(small: OpenModel) -> None:
    content = make_content(small, boards.load("mcxn9xxevk"), [], title="small.tflite", command="")
    readme = zephyr_files(content)["README.md"].decode()
    assert re.findall(r"^\$ (.*)$", readme, re.MULTILINE) == [
        "west build -p always -b mcx_n9xx_evk/mcxn947/cpu0 .",
        "west flash",
        "python -m serial.tools.miniterm /dev/ttyACM0 115200",
    ]


def test_a_board_without_a_name_in_zephyr_is_refused(content: Content) -> None:
    with pytest.raises(OptionError, match=r"mps2-an505: no name of it in Zephyr.*use --for cmake$"):
        zephyr_files(content)
