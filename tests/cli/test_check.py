from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

from openneutron.cli.shared.budgets import KINDS, read_budgets

ROOT = Path(__file__).resolve().parents[2]
GOOD = """
[[model]]
source = "convnet.tflite"
target = "mcxn94x"
data = "d.npz"
[model.budget]
cycles = 1_000_000
sram = "8K"
flash = "64K"
cpu_nodes = 0
lsb = 0
accuracy = 0.0
accuracy_drop = 0
"""


@pytest.fixture
def budgets(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    np.savez(folder / "d.npz", x=rng.integers(-128, 128, (6, 8, 8, 3), dtype=np.int8), y=rng.integers(0, 5, 6))
    (folder / "openneutron.toml").write_text(GOOD)
    return folder / "openneutron.toml"


def test_budgets_that_are_kept_give_0(command, budgets: Path) -> None:
    outcome = command("check")
    assert (outcome.code, outcome.err) == (0, "")
    assert "all 7 budgets kept" in outcome.out


def test_a_broken_budget_gives_1_and_says_by_how_much(command, budgets: Path) -> None:
    measured = json.loads(command("check", "--json").out)["measured"]["convnet.tflite on mcxn94x"]
    allowed = int(measured["cycles"]) - 1
    budgets.write_text(GOOD.replace("1_000_000", str(allowed)).replace("accuracy = 0.0", "accuracy = 1.0"))
    outcome = command("check", "--markdown", "m.md")
    assert outcome.code == 1
    assert "2 of 7 budgets broken" in outcome.out and "under" in outcome.out
    table = Path("m.md").read_text()
    assert f"| ❌ | convnet.tflite on mcxn94x | cycles | ≤ {allowed:,} | {allowed + 1:,} |" in table


def test_a_change_of_less_than_one_is_shown(command, budgets: Path) -> None:
    budgets.write_text(GOOD.replace("cycles = 1_000_000", "milliseconds = 9"))
    before = json.loads(command("check", "--json").out)
    before["measured"]["convnet.tflite on mcxn94x"]["milliseconds"] += 0.25
    Path("base.json").write_text(json.dumps(before))
    assert "-0.250" in command("check", "--baseline", "base.json").out


def test_conversions_at_the_border_are_no_nodes_on_the_cpu(command, folder: Path) -> None:
    (folder / "net.py").write_text(
        "import torch\ndef factory():\n    data = [(torch.rand(1, 1, 8, 8),) for _ in range(2)]\n"
        "    return torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU()).eval(), data[0], data\n"
    )
    (folder / "openneutron.toml").write_text('[[model]]\nsource = "net:factory"\n[model.budget]\ncpu_nodes = 0\n')
    assert command("check").code == 0


def test_a_baseline_shows_the_change(command, budgets: Path) -> None:
    before = json.loads(command("check", "--json").out)
    before["measured"]["convnet.tflite on mcxn94x"]["cycles"] -= 10
    Path("base.json").write_text(json.dumps(before))
    outcome = command("check", "--baseline", "base.json")
    assert "+10" in outcome.out and "same" in outcome.out


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('source = "convnet.tflite"', "", "source is missing"),
        ('source = "convnet.tflite"', 'sauce = 1\nsource = "x"', "unknown key 'sauce'"),
        ("cycles =", "cycels =", "unknown budget 'cycels'"),
        ("1_000_000", '"many"', "cycles is 'many'"),
        ('"8K"', '"eight"', "sram is 'eight'"),
        ("accuracy = 0.0", "accuracy = 80", "give a share from 0 to 1"),
        ("mcxn94x", "mcx", "unknown target 'mcx'"),
        ('target = "mcxn94x"', 'optimize = "hard"', "optimize is 'hard'"),
        ('target = "mcxn94x"', "target = 7", "target is 7"),
        ("[[model]]", "[[modle]]", "[[model]] tables and nothing else"),
        ("[[model]]", "[[model]", "no TOML"),
        ("convnet.tflite", "gone.tflite", "no such file"),
    ],
    ids=["source", "key", "budget", "number", "size", "share", "target", "optimize", "type", "table", "syntax", "file"],
)  # fmt: skip
def test_a_wrong_file_is_refused_by_name(refused, budgets: Path, old: str, new: str, message: str) -> None:
    budgets.write_text(GOOD.replace(old, new))
    assert message in refused("check")


def test_a_model_is_no_file_of_budgets(refused, folder: Path) -> None:
    assert "convnet.tflite: this is a model, not a file of budgets. Hint: " in refused("check", "convnet.tflite")


def test_a_missing_file_or_baseline_is_refused(refused, budgets: Path) -> None:
    assert "no such file" in refused("check", "gone.toml")
    Path("base.json").write_text("[]")
    assert "this is no baseline" in refused("check", "--baseline", "base.json")


def test_the_example_names_only_what_exists_and_its_readme_every_budget() -> None:
    entries = read_budgets(ROOT / "examples/ci/openneutron.toml")
    assert [entry.name for entry in entries] == ["cifarnet on imxrt700", "cifarnet on mcxn94x"]
    text = (ROOT / "examples/ci/README.md").read_text()
    assert all(f"`{name}`" in text for name in KINDS)
    assert tomllib.loads((ROOT / "examples/ci/openneutron.toml").read_text())["model"][0]["limit"] == 200


def test_the_example_is_kept(command) -> None:
    outcome = command("check", ROOT / "examples/ci/openneutron.toml")
    assert (outcome.code, outcome.err) == (0, ""), outcome.out
