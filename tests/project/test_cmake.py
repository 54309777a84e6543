"""Bare-metal projects are built with CMake and run under QEMU as their README says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from openneutron.machine.runtime_memory import STACK_BYTES
from openneutron.project import boards
from openneutron.project.cmake import cmake_files
from openneutron.project.content import Content, make_content
from openneutron.project.open_model import OpenModel
from openneutron.project.sizes import CODE_BYTES, STATIC_BYTES
from openneutron.project.write import write_files
from tests.firmware import image
from tests.project.conftest import command

CONFIGURE = ["cmake", "-B", "build"]
BUILD = ["cmake", "--build", "build", "-j", "2"]
RUN = ["cmake", "--build", "build", "--target", "run"]


@pytest.fixture(scope="module")
def built(tools: None, small: OpenModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project for a board of NXP's: images for QEMU and for the chip's memory."""
    content = make_content(small, boards.load("frdmmcxn947"), [], title="small.tflite", command="")
    folder = tmp_path_factory.mktemp("cmake") / "made"
    write_files(cmake_files(content), folder)
    command(CONFIGURE, folder)
    command(BUILD, folder)
    return folder


def test_the_self_test_passes_under_qemu(built: Path) -> None:
    text = command(RUN, built)
    assert "2 of 2 samples equal the expected outputs\nself-test: pass\n" in text
    used = re.search(rf"stack: (\d+) of {STACK_BYTES} bytes used", text)
    assert used and 0 < int(used[1]) <= STACK_BYTES


def test_the_images_keep_within_what_was_counted(built: Path, content: Content) -> None:
    for name, board in (("small", "mps2-an505"), ("small_chip", "frdmmcxn947")):
        sizes = image.sections(built / "build" / f"{name}.elf")
        assert sizes[".text"] <= CODE_BYTES
        assert sizes[".payload"] == content.sizes.payload_bytes + content.sizes.sample_bytes
        static = sizes.get(".data", 0) + sizes[".bss"] - content.sizes.arena_bytes - content.sizes.output_bytes
        assert 0 <= static <= STATIC_BYTES
        vectors = image.address(built / "build" / f"{name}.elf", ".text")
        assert vectors == boards.load(board).flash.origin


def test_only_the_selected_kernels_are_linked(built: Path) -> None:
    names = ("conv2d", "max_pool2d", "fully_connected", "softmax", "add", "lstm", "gather")
    found = image.kernels_in(built / "build" / "small.elf", names)
    assert found == {"conv2d", "max_pool2d", "fully_connected", "softmax"}


def test_a_wrong_byte_is_reported_and_fails(built: Path) -> None:
    samples = built / "model" / "samples.c"
    text = samples.read_text()
    changed = re.sub(r"(sample_1_output_0\[\] = \{\n    0x[0-9a-f]{4})([0-9a-f]{2})", _other_byte, text, count=1)
    assert changed != text
    samples.write_text(changed)
    try:
        shown = command(RUN, built, fails=True)
    finally:
        samples.write_text(text)
    assert re.search(r"sample 1: output 0 differs from byte 1 on: \d+ instead of \d+", shown)
    assert "1 of 2 samples equal the expected outputs\nself-test: fail\n" in shown


def _other_byte(found: re.Match[str]) -> str:
    return f"{found[1]}{int(found[2], 16) ^ 1:02x}"


def test_the_readme_has_the_commands_that_work(built: Path) -> None:
    text = (built / "README.md").read_text()
    assert re.findall(r"^\$ (.*)$", text, re.MULTILINE) == [
        "cmake -B build", "cmake --build build -j", "cmake --build build --target run",
    ]  # fmt: skip
    assert "`small_chip.elf`" in text or "small_chip.elf" in text


def test_headers_are_for_cxx_too(built: Path) -> None:
    names = ("model/model.h", "model/samples.h", "application/self_test.h", "runtime/include/neutron.h")
    (built / "use.cpp").write_text("".join(f'#include "{name}"\n' for name in names))
    flags = ["-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-Iruntime/include"]
    command(["g++", *flags, "use.cpp"], built)


@pytest.mark.full
def test_a_lean_image_is_smaller_and_passes(built: Path) -> None:
    command(["cmake", "-B", "lean", "-DLEAN=ON"], built)
    command(["cmake", "--build", "lean", "-j", "2"], built)
    assert "self-test: pass" in command(["cmake", "--build", "lean", "--target", "run"], built)
    whole, lean = (image.sections(built / folder / "small.elf")[".text"] for folder in ("build", "lean"))
    assert lean < whole


@pytest.mark.parametrize("name", boards.names())
def test_every_board_has_a_project(small: OpenModel, name: str) -> None:
    board = boards.load(name)
    files = cmake_files(make_content(small, board, [], title="small.tflite", command=""))
    text = files["CMakeLists.txt"].decode()
    assert f"set(cpu {board.core})" in text and boards.emulator(board.core).machine in text
    assert ("small_chip" in text) == bool(board.chip)
    assert not re.search(r"\{[{%]", text + files["README.md"].decode())


@pytest.mark.full
@pytest.mark.parametrize(
    ("model", "core"),
    [
        ("cifarnet", "cortex-m33"),
        ("ds_cnn", "cortex-m4"),
        ("autoencoder", "cortex-m7"),
        ("cifarnet", "cortex-m55"),
        ("ds_cnn", "cortex-m85"),
    ],
)
def test_models_of_the_zoo_run_on_every_core(tools: None, tmp_path: Path, model: str, core: str) -> None:
    command(["openneutron", "project", model, "--for", "cmake", "--board", core, "-o", "made"], tmp_path)
    for step in (CONFIGURE, BUILD):
        command(step, tmp_path / "made")
    assert "self-test: pass" in command(RUN, tmp_path / "made")
