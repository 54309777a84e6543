"""The workflows of .github/ name tasks, scripts and versions that exist; what GitHub alone can run is not run here."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(path: Path) -> dict[Any, Any]:
    found = yaml.safe_load(path.read_text("utf-8"))
    assert isinstance(found, dict)
    return found


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in read(path)["jobs"].values() for step in job.get("steps", [])]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_tasks_and_scripts_exist(path: Path) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    commands = "\n".join(step["run"] for step in steps(path) if "run" in step)
    assert set(re.findall(r"^make ([a-z0-9-]+)", commands, re.MULTILINE)) <= targets
    assert all((ROOT / script).is_file() for script in re.findall(r"\b(?:scripts|tests)/[\w/]+\.py\b", commands))
    called = [job["uses"] for job in read(path)["jobs"].values() if "uses" in job]
    assert all((ROOT / name).is_file() for name in called)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_nothing_is_granted_that_a_job_does_not_ask_for(path: Path) -> None:
    assert read(path)["permissions"] == {"contents": "read"}
    checkouts = [step for step in steps(path) if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    # Names that others choose, a branch or a tag, reach a shell only as variables.
    assert all("${{" not in step["run"] for step in steps(path) if "run" in step)


def test_every_python_is_tested_and_needs_are_jobs() -> None:
    script = ast.parse((ROOT / "scripts" / "wheel_test.py").read_text("utf-8"))
    (pythons,) = [
        ast.literal_eval(node.value)
        for node in script.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "PYTHONS"
    ]
    jobs = read(ROOT / ".github" / "workflows" / "wheels.yml")["jobs"]
    assert tuple(jobs["x86-64"]["strategy"]["matrix"]["python"]) == pythons
    for path in WORKFLOWS:
        found = read(path)["jobs"]
        assert {job["needs"] for job in found.values() if "needs" in job} <= set(found)
