"""ExecuTorch programs for NXP's backend: compiled with ExecuTorch's headers, run by its runtime with the open delegate."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from openneutron.errors import OptionError
from openneutron.machine.native import delegate_path
from openneutron.microcode.payload import build_payload
from openneutron.project import boards, make
from openneutron.project.content import make_content
from openneutron.project.mcuxpresso import mcuxpresso_files
from openneutron.project.npu import NpuModel, check_npu_sizes
from openneutron.project.npu_program import KERNELS, npu_program, registrations
from openneutron.project.open_model import open_model
from openneutron.project.templates import fill
from openneutron.project.write import write_files
from tests.executorch.delegates import compiled, payload_of, pool, pool_model, program_of, random_int8

STANDINS = Path(__file__).parent / "standins" / "mcuxsdk" / "include"
X = random_int8(1, 5, 8, 6)
ROOT = Path(next(iter(find_spec("executorch").submodule_search_locations)))  # type: ignore[union-attr,arg-type]
CXX = [
    "g++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-DC10_USING_CUSTOM_GENERATED_MACROS",
    "-isystem", str(ROOT / "include"), "-isystem", str(ROOT / "include/executorch/runtime/core/portable_type/c10"),
]  # fmt: skip


def by_nxp() -> bytes:
    """A program whose delegate has another version word and converter."""
    blocks = compiled(pool_model((1, 8, 6, 5)))
    microcode = bytearray(blocks.microcode)
    microcode[4:8] = (0x1234ABCD).to_bytes(4, "little")
    payload = build_payload(
        bytes(microcode), blocks.weights, blocks.kernels, [1], [1], [0], [0], 1, 0, "imxrt700", "nxp", "3.1.1"
    )
    return program_of([payload], [X], [[pool(X)]])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """What the open converter made of the same model."""
    path = tmp_path / "model.pte"
    path.write_bytes(program_of([payload_of(compiled(pool_model((1, 8, 6, 5))), [1], [1])], [X], [[pool(X)]]))
    return path


@pytest.fixture
def npu(source: Path) -> NpuModel:
    return npu_program(by_nxp(), "npu", source, boards.load("mimxrt700evk"), inputs=[], count=2, seed=0)


def built(folder: Path, source: Path, npu: NpuModel) -> Path:
    """The NPU's part of a project with the open delegate in place of NXP's, which runs the open program."""
    board = boards.load("mimxrt700evk")
    runs = replace(npu, data=source.read_bytes())
    content = make_content(
        open_model(source.read_bytes(), "model.pte"), board, [], title="model.pte", command="", npu=runs
    )
    write_files(mcuxpresso_files(content), folder / "made")
    c = ["gcc", "-c", "-Wall", "-Wextra", "-Werror", f"-I{folder}/made/application", f"-I{STANDINS}"]
    parts = [folder / "made" / "npu" / name for name in ("npu_compare.c", "npu_model.c", "npu_samples.c", "main.c")]
    parts.append(folder / "made" / "application" / "console.c")
    subprocess.run([*c, *map(str, parts)], cwd=folder, check=True)
    objects = [f"{part.stem}.o" for part in parts]
    libraries = ["-Wl,--no-as-needed", str(ROOT / "lib/libexecutorch.so"), str(delegate_path())]
    paths = [f"-Wl,-rpath,{Path(one).parent}" for one in libraries[1:]]
    includes = [f"-I{folder}/made/application", f"-I{STANDINS}"]
    words = [*CXX, *includes, str(folder / "made/npu/program_test.cpp"), *objects, *libraries, *paths, "-o", "program"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "program"


def test_executorch_runs_the_samples(tmp_path: Path, source: Path, npu: NpuModel) -> None:
    done = subprocess.run([built(tmp_path, source, npu)], capture_output=True, text=True, timeout=600)
    text = done.stdout.replace("\r", "")
    assert text.startswith("ExecuTorch with NXP's Neutron library: model.pte\n")
    assert "sample 1: output 0 equals LiteRT's exact values\n2 of 2 samples as expected\nself-test: pass\n" in text


def test_every_registration_has_a_kernel_in_executorch(tmp_path: Path) -> None:
    """Names and types are those of the real kernels, or the linker would not find them."""
    source = fill("npu/register_kernels.cpp.jinja", title="x", version="0", kernels=registrations(sorted(KERNELS)))
    (tmp_path / "kernels.cpp").write_text(source)
    names = ("libexecutorch.so", "libexecutorch_kernels_optimized.so", "libexecutorch_kernels_quantized.so")
    libraries = [str(ROOT / "lib" / name) for name in names]
    words = [*CXX, "-shared", "-fPIC", "-Wl,--no-undefined", "kernels.cpp", *libraries, "-o", "kernels.so"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_pools_hold_plan_and_scratch(source: Path, npu: NpuModel) -> None:
    assert npu.pools is not None and npu.arena_bytes == sum(npu.pools)
    assert npu.pools[0] > X.nbytes and npu.pools[1] > 2 * X.nbytes
    check_npu_sizes(npu, boards.load("frdmimxrt700"))
    with pytest.raises(OptionError, match="RAM for the pools"):
        check_npu_sizes(replace(npu, arena_bytes=1 << 21), boards.load("mimxrt700evk"))


def test_other_programs_are_refused(source: Path) -> None:
    def read(data: bytes, model: Path = source) -> None:
        npu_program(data, "npu", model, boards.load("mimxrt700evk"), inputs=[], count=1, seed=0)

    with pytest.raises(OptionError, match="NXP's converter did not make it"):
        read(source.read_bytes())
    with pytest.raises(OptionError, match=r"made of two \.pte files"):
        read(b"something else")
    other = source.with_name("other.pte")
    y = random_int8(1, 5, 8, 7)
    other.write_bytes(program_of([payload_of(compiled(pool_model((1, 8, 7, 5))), [1], [1])], [y], [[pool(y)]]))
    with pytest.raises(OptionError, match="inputs and outputs are not those of"):
        read(by_nxp(), other)


def test_a_program_becomes_a_project_of_the_sdk_for_that_chip(source: Path) -> None:
    converted = source.with_name("npu.pte")
    converted.write_bytes(by_nxp())
    files = make(source, platform="mcuxpresso", board="mimxrt700evk", npu=converted).files
    assert "CONFIG_MCUX_COMPONENT_middleware.eiq.executorch.neutron=y" in files["npu/prj.conf"].decode()
    assert "eiq_examples/executorch_cifarnet)" in files["npu/CMakeLists.txt"].decode()
    assert "npu/register_kernels.cpp" not in files  # nothing is left outside of the delegate
    assert not re.search(r"\{[{%]", files["npu/program_test.cpp"].decode())
    for platform, board in (("zephyr", "mimxrt700evk"), ("mcuxpresso", "frdmmcxn947")):
        with pytest.raises(OptionError, match=r"ExecuTorch for i\.MX RT700 in MCUXpresso SDK only"):
            make(source, platform=platform, board=board, npu=converted)
    with pytest.raises(OptionError, match=r"a \.pte is compiled already"):
        make(source, platform="mcuxpresso", board="mimxrt700evk", converter="nxp")
