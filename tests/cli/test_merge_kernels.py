from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from openneutron.compiler import kernels
from openneutron.microcode.selection import parse, selection_code
from tests.cli.conftest import Command

kernels.rules()


@pytest.fixture
def selections(folder: Path) -> Path:
    (folder / "a.c").write_text(selection_code([1, 4], "imxrt700", "0.1.0"))
    (folder / "b.c").write_text(selection_code([1, 5], "imxrt700", "0.1.0"))
    (folder / "other.c").write_text(selection_code([1], "mcxn94x", "0.1.0"))
    return folder


def test_selections_are_merged(command: Command, selections: Path) -> None:
    outcome = command("merge-kernels", "-o", "merged.c", "a.c", "b.c")
    assert (outcome.code, outcome.out) == (0, "merged.c: the kernels of 2 selections\n")
    found = json.loads(command("merge-kernels", "-o", "again.c", "a.c", "b.c", "--json").out)
    assert found == {"output": "again.c", "merged": ["a.c", "b.c"]}
    assert sorted(parse("merged.c", (selections / "merged.c").read_text()).kernels) == [1, 4, 5]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["a.c", "other.c"], "other.c: target mcxn94x differs from imxrt700 of a.c"),
        (["a.c", "a.c"], "a.c: the file is given twice"),
        (["a.c", "missing.c"], "missing.c: there is no such file"),
        (["a.c", "convnet.tflite"], "convnet.tflite: "),
    ],
    ids=["target", "twice", "missing", "no selection"],
)
def test_what_cannot_be_merged_leaves_the_output_alone(
    refused: Callable[..., str], selections: Path, files: list[str], message: str
) -> None:
    (selections / "merged.c").write_text("before")
    assert message in refused("merge-kernels", "-o", "merged.c", *files)
    assert (selections / "merged.c").read_text() == "before"


def test_the_output_is_c_source(refused: Callable[..., str], selections: Path) -> None:
    assert "merged.txt: the name must end in .c" in refused("merge-kernels", "-o", "merged.txt", "a.c")


def test_each_subgraph_gets_a_selection_beside_the_one_for_all(command: Command, folder: Path) -> None:
    assert command("compile", "sandwich.tflite", "-o", "out.tflite", "--dump-kernel-selection").code == 0
    files = sorted(path.name for path in folder.glob("*.c"))
    assert files == ["out_0_kernel_selection.c", "out_1_kernel_selection.c", "out_kernel_selection.c"]
    parts = [set(parse(name, (folder / name).read_text()).kernels) for name in files]
    assert parts[0] | parts[1] == parts[2]
    assert command("merge-kernels", "-o", "merged.c", *files[:2]).code == 0
    assert (folder / "merged.c").read_text() == (folder / files[2]).read_text()


def test_one_subgraph_gets_one_selection(command: Command, folder: Path) -> None:
    assert command("compile", "convnet.tflite", "-o", "out.tflite", "--dump-kernel-selection").code == 0
    assert [path.name for path in folder.glob("*.c")] == ["out_kernel_selection.c"]
