"""Kernel selection: the C it makes compiles, links and wins; merging is exact about what it refuses."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from openneutron.compiler import kernels
from openneutron.errors import FormatError, OpenNeutronError, OptionError
from openneutron.microcode import selection
from openneutron.microcode.abi import all_kernels
from openneutron.microcode.selection import merge, merge_files, parse, selection_code

kernels.rules()
IDS = {kernel.name: kernel.id for kernel in all_kernels()}
RUNTIME = Path(__file__).parents[2] / "runtime"
GCC = [shutil.which("gcc") or "gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{RUNTIME}/include"]
GCC.append(f"-I{RUNTIME}/firmware")
CONV = selection_code([IDS["conv2d"]], "imxrt700", "0.1.0")
POOL = selection_code([IDS["max_pool2d"], IDS["conv2d"]], "imxrt700", "0.1.0")


def compiled(tmp_path: Path, name: str, code: str) -> Path:
    source = tmp_path / f"{name}.c"
    source.write_text(code)
    target = source.with_suffix(".o")
    subprocess.run([*GCC, "-c", source, "-o", target], check=True)
    return target


def test_the_code_names_converter_target_and_the_tables_users_look_for() -> None:
    assert " * converter: openneutron 0.1.0\n" in CONV
    assert " * target: imxrt700\n" in CONV
    assert "typedef enum NeutronKernelKind {" in CONV
    assert "int32_t (*neutronKernels[NEUTRON_KERNEL_LIMIT])(uint32_t verb, nk_call *call)" in CONV
    assert re.findall(r"= (nk_\w+),", CONV) == ["nk_conv2d"]


def test_the_order_of_ids_does_not_matter() -> None:
    ids = [IDS["max_pool2d"], IDS["conv2d"], IDS["conv2d"]]
    assert selection_code(ids, "imxrt700", "0.1.0") == POOL


def test_an_unknown_kernel_is_refused() -> None:
    with pytest.raises(FormatError, match="kernel id 9999 is unknown"):
        selection_code([9999], "imxrt700", "0.1.0")


@pytest.mark.parametrize("names", [[], ["conv2d"], sorted(IDS)], ids=["none", "one", "all"])
def test_the_code_compiles_without_warnings(tmp_path: Path, names: list[str]) -> None:
    code = selection_code([IDS[name] for name in names], "imxrt700", "0.1.0")
    symbols = subprocess.run(["nm", compiled(tmp_path, "chosen", code)], check=True, capture_output=True, text=True)
    assert set(re.findall(r"U nk_(\w+)", symbols.stdout)) == set(names)
    assert re.search(r" [DB] neutronKernels", symbols.stdout)


def test_another_firmware_is_found_when_compiling(tmp_path: Path) -> None:
    code = CONV.replace(f"NEUTRON_KERNEL_CONV2D == {IDS['conv2d']}", "NEUTRON_KERNEL_CONV2D == 77")
    source = tmp_path / "other.c"
    source.write_text(code)
    made = subprocess.run([*GCC, "-c", source, "-o", tmp_path / "other.o"], capture_output=True, text=True)
    assert made.returncode != 0
    assert "the firmware is of another converter version" in made.stderr


_MAIN = """
#include <stdio.h>
#include "nk.h"
int main(void) {
    for (uint32_t i = 0; i < neutronKernelCount; ++i)
        if (neutronKernels[i] != NULL) printf("%u %d\\n", i, (int)neutronKernels[i](NK_CHECK, NULL));
    return 0;
}
"""


def test_a_linked_selection_takes_precedence_and_leaves_the_other_kernels_out(tmp_path: Path) -> None:
    main = compiled(tmp_path, "main", _MAIN)
    table = tmp_path / "kernel_table.o"
    subprocess.run([*GCC, "-c", RUNTIME / "firmware" / "kernel_table.c", "-o", table], check=True)
    # One object for each kernel, as in the firmware's archive; each entry says its own id.
    objects = []
    for name, number in IDS.items():
        text = f'#include "nk.h"\nint32_t nk_{name}(uint32_t verb, nk_call *call);\n'
        text += f"int32_t nk_{name}(uint32_t verb, nk_call *call) {{ (void)verb; (void)call; return {number}; }}\n"
        objects.append(compiled(tmp_path, f"nk_{name}", text))
    archive = tmp_path / "libfirmware.a"
    subprocess.run(["ar", "rcs", archive, table, *objects], check=True)

    def image(name: str, *parts: Path) -> tuple[list[int], set[str]]:
        program = tmp_path / name
        subprocess.run([GCC[0], *parts, archive, "-o", program], check=True)
        printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()
        symbols = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout
        return [int(word) for word in printed], set(re.findall(r"T nk_(\w+)", symbols))

    every, present = image("everything", main)
    assert present == set(IDS) and every[::2] == every[1::2] == sorted(IDS.values())
    some, present = image("selected", main, compiled(tmp_path, "selection", POOL))
    assert present == {"conv2d", "max_pool2d"}
    assert some[::2] == some[1::2] == sorted([IDS["conv2d"], IDS["max_pool2d"]])


def test_merging_is_the_union() -> None:
    lut = selection_code([IDS["lut"]], "imxrt700", "0.1.0")
    ids = [IDS["conv2d"], IDS["max_pool2d"], IDS["lut"]]
    assert merge([("a.c", CONV), ("b.c", POOL), ("c.c", lut)]) == selection_code(ids, "imxrt700", "0.1.0")


def test_merging_merged_files_and_one_alone_works() -> None:
    assert merge([("a.c", CONV)]) == CONV
    assert merge([("m.c", merge([("a.c", CONV), ("b.c", POOL)])), ("a.c", CONV)]) == POOL


def test_two_models_may_need_the_same_kernels() -> None:
    assert merge([("a.c", CONV), ("b.c", CONV)]) == CONV


def test_changed_line_ends_are_no_edit() -> None:
    assert parse("a.c", CONV.replace("\n", "\r\n")) == parse("a.c", CONV)


@pytest.mark.parametrize(
    ("other", "error", "message"),
    [
        (
            selection_code([1], "imxrt700", "0.2.0"),
            OptionError,
            r"b\.c: converter version 0\.2\.0 differs from 0\.1\.0 of a\.c",
        ),
        (selection_code([1], "mcxn94x", "0.1.0"), OptionError, r"b\.c: target mcxn94x differs from imxrt700 of a\.c"),
        ("int main(void) { return 0; }\n", FormatError, r"b\.c: this is no kernel selection"),
        ("", FormatError, r"b\.c: this is no kernel selection"),
        (CONV.replace("nk_conv2d", "nk_other"), FormatError, r"b\.c: the selection was edited or damaged"),
        (CONV.replace("target: imxrt700", "target: imx95"), FormatError, r"b\.c: the selection was edited or damaged"),
        (CONV[: len(CONV) // 2], FormatError, r"b\.c: the selection was edited or damaged"),
        (re.sub(r" \* checksum.*\n", "", CONV), FormatError, r"b\.c: the selection was edited or damaged"),
        (CONV[CONV.index("#include") :], FormatError, r"b\.c: the selection was not made by this OpenNeutron"),
    ],
    ids=["version", "target", "other C", "empty", "kernel edited", "head edited", "cut", "no checksum", "NXP's"],
)
def test_what_cannot_be_merged_is_named(other: str, error: type[OpenNeutronError], message: str) -> None:
    with pytest.raises(error, match=message):
        merge([("a.c", CONV), ("b.c", other)])


def test_the_same_name_twice_and_no_files_are_refused() -> None:
    with pytest.raises(OptionError, match=r"a\.c: the file is given twice"):
        merge([("a.c", CONV), ("a.c", CONV)])
    with pytest.raises(OptionError, match="no selection to merge"):
        merge([])


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    paths = (tmp_path / "a.c", tmp_path / "b.c", tmp_path / "out.c")
    for path, text in zip(paths, (CONV, POOL, "what was there before"), strict=True):
        path.write_text(text)
    return paths


def test_files_are_merged_into_a_new_file(files: tuple[Path, Path, Path]) -> None:
    merge_files(files[:2], files[2])
    assert files[2].read_text() == POOL
    assert sorted(path.name for path in files[2].parent.iterdir()) == ["a.c", "b.c", "out.c"]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda a, b: b.write_text("nonsense"), "b.c: this is no kernel selection"),
        (lambda a, b: b.write_bytes(b"/* \xff"), "b.c: byte 3 is no text"),
        (lambda a, b: b.unlink(), "b.c: there is no such file"),
        (lambda a, b: (b.unlink(), b.symlink_to(a)), "b.c: the file is given twice"),
        (lambda a, b: (b.unlink(), b.mkdir()), "b.c: this is a folder"),
    ],
    ids=["no selection", "binary", "missing", "link to the other", "folder"],
)
def test_on_an_error_the_output_is_not_touched(files: tuple[Path, Path, Path], spoil: object, message: str) -> None:
    spoil(files[0], files[1])
    with pytest.raises(OpenNeutronError, match=re.escape(message)):
        merge_files(files[:2], files[2])
    assert files[2].read_text() == "what was there before"


def test_the_output_may_not_be_an_input(files: tuple[Path, Path, Path]) -> None:
    with pytest.raises(OptionError, match="the output is also an input"):
        merge_files(files[:2], files[0])
    assert files[0].read_text() == CONV


def run_tool(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "openneutron.compat.merge_kernel_selection_code", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_command_merges(files: tuple[Path, Path, Path]) -> None:
    done = run_tool("-input-files", files[0], files[1], "-output-file", files[2])
    assert (done.returncode, done.stderr) == (0, "")
    assert files[2].read_text() == POOL


def test_the_command_says_what_is_wrong_in_one_line(files: tuple[Path, Path, Path]) -> None:
    files[1].write_text("nonsense")
    done = run_tool("-input-files", files[0], files[1], "-output-file", files[2])
    assert done.returncode == 1
    assert done.stderr == f"error: {files[1]}: this is no kernel selection. Hint: give *_kernel_selection.c files\n"


def test_parsing_is_the_inverse_of_rendering() -> None:
    made = selection.Selection({3: "a", 7: "b"}, "imx95", "1.2.3")
    assert parse("x.c", selection.render(made)) == made
