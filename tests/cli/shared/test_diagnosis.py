"""The doctor is right with and without each part, and works where nothing but Python is installed."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from openneutron.cli.shared import diagnosis
from openneutron.cli.shared.diagnosis import Part
from tests.cli.conftest import Command

SOURCE = Path(diagnosis.__file__).parents[3]


def part(name: str) -> Part:
    return next(one for one in diagnosis.diagnosis() if one.name == name)


def test_what_pyproject_asks_for_and_every_extra_is_looked_at() -> None:
    project = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {name: [_name(one) for one in wanted] for name, wanted in project["optional-dependencies"].items()}
    assert set(diagnosis.NEEDED) == {_name(one) for one in project["dependencies"]}
    (wanted,) = project["optional-dependencies"]["all"]
    for extra in wanted.removeprefix("openneutron[").rstrip("]").split(","):
        for distribution in set(extras[extra]) - {"openneutron"}:
            assert diagnosis.OPTIONAL[distribution][2] == f"'openneutron[{extra}]'"


def _name(wanted: str) -> str:
    return re.split(r"[<>=\[]", wanted)[0]


def test_a_missing_or_wrong_package_is_named_with_its_remedy(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "NEEDED", ("no-such-package",))
    monkeypatch.setattr(diagnosis, "OPTIONAL", {"numpy": (("0.1.",), "arrays", "numpy")})
    outcome = command("doctor")
    assert outcome.code == 1
    assert "pip install no-such-package" in outcome.out
    assert "OpenNeutron needs 0.1.x: pip install 'numpy==0.1.*'" in outcome.out
    assert outcome.out.endswith("missing: no-such-package, numpy\n")


def test_a_library_that_is_not_built_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("openneutron.machine.native._FOLDER", tmp_path)
    for name in ("driver and kernels", "ExecuTorch delegate"):
        assert part(name).state == "missing" and "make setup" in part(name).found


def test_what_is_optional_says_what_it_is_for(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "OPTIONAL", {"no-such-package": ((), "nice tables", "no-such-package")})
    monkeypatch.setattr("shutil.which", lambda program: None)
    assert part("no-such-package") == Part(
        "no-such-package", "optional", "for nice tables: pip install no-such-package"
    )
    assert part("browser").found.startswith("no chromium, chromedriver; for ")
    assert "apt-get install gcc-arm-none-eabi" in part("Cortex-M33 tools").found
    assert command("doctor").code == 0


SDKS: dict[str, tuple[str, str, str]] = {
    "NXP's": ("eiq-neutron-sdk", "optional", "ok 2.3.0"),
    "a stand-in of ours": (
        "openneutron-eiq-compat",
        "optional",
        "optional eiq_neutron_sdk is OpenNeutron's own stand-in",
    ),
}


@pytest.mark.parametrize("name", SDKS)
def test_nxps_sdk_is_told_from_a_stand_in(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    distribution, before, after = SDKS[name]
    assert part("NXP's SDK").state == before
    (tmp_path / "eiq_neutron_sdk").mkdir()
    (tmp_path / "eiq_neutron_sdk" / "__init__.py").write_text("")
    info = tmp_path / f"{distribution.replace('-', '_')}-2.3.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 2.3.0\n")
    (info / "top_level.txt").write_text("eiq_neutron_sdk\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = part("NXP's SDK")
    assert f"{found.state} {found.found}".startswith(after)


@pytest.fixture
def bare(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """A Python that sees our sources and nothing that is installed."""

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({str(SOURCE)!r})\n"
                   "from openneutron.cli.main import main; main()", *arguments]  # fmt: skip
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    return call


def test_the_doctor_works_where_nothing_is_installed(bare: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = bare("doctor")
    assert (done.returncode, done.stderr) == (1, "")
    assert "not installed: pip install numpy" in done.stdout
    assert "missing: ai-edge-litert, flatbuffers, jinja2, numpy" in done.stdout


@pytest.mark.parametrize("arguments", [["--help"], ["zoo"], ["inspect", "a.pte"]], ids=" ".join)
def test_other_commands_name_the_package_and_the_doctor(
    bare: Callable[..., subprocess.CompletedProcess[str]], arguments: list[str]
) -> None:
    done = bare(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("openneutron: the Python package typer is not installed. Hint: `openneutron doctor`")
    assert done.stderr.count("\n") == 1
