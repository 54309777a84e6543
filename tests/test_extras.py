"""What needs an extra says which; the table of extras is the one of pyproject.toml."""

import gc
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from openneutron.errors import MissingExtraError
from openneutron.extras import EXTRA_OF, extra, missing_extra, pause_collector

ROOT = Path(__file__).parents[1]
DISTRIBUTION = {
    "serial": "pyserial", "PIL": "pillow", "ai_edge_quantizer": "ai-edge-quantizer", "model_explorer": "ai-edge-model-explorer",
}  # fmt: skip


def test_every_extra_brings_its_packages():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for package, name in EXTRA_OF.items():
        brought = {re.split(r"[<>=\[]", wanted)[0] for wanted in extras[name]}
        assert DISTRIBUTION.get(package, package) in brought


def test_a_missing_package_is_one_sentence():
    with (
        pytest.raises(MissingExtraError, match=r"this needs .* torch.*pip install 'openneutron\[executorch\]'"),
        extra("this"),
    ):
        raise ModuleNotFoundError("No module named 'torch.nn'", name="torch.nn")


def test_other_missing_modules_are_not_explained_away():
    assert missing_extra("no_such_package") is None
    with pytest.raises(ModuleNotFoundError, match="no_such_package"), extra("this"):
        raise ModuleNotFoundError("No module named 'no_such_package'", name="no_such_package")


def test_an_import_is_not_searched_for_garbage():
    with pytest.raises(ZeroDivisionError), extra("this"), pause_collector():
        assert not gc.isenabled()
        print(1 / 0)
    assert gc.isenabled()
    gc.disable()
    try:
        with pause_collector():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_litert_path_imports_no_extra():
    code = """
import sys
import openneutron.api, openneutron.cli.app, openneutron.analyze.verify, openneutron.report.html.page
from tests import tiny
openneutron.api.compile(tiny.convnet())
print(sorted({name.partition(".")[0] for name in sys.modules} & set(sys.argv[1:])))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, *EXTRA_OF], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
