"""One sentence for every ExecuTorch that is not the right one."""

from importlib.metadata import PackageNotFoundError

import pytest

from openneutron.errors import MissingExtraError, OpenNeutronError
from openneutron.executorch.upstream import switch, versions


def pretend(monkeypatch: pytest.MonkeyPatch, installed: str, built: str = "1.5") -> None:
    for module in (switch, versions):
        monkeypatch.setattr(module, "version", lambda name: installed)
    monkeypatch.setattr(versions, "delegate_built_for", lambda: built)
    monkeypatch.delenv("OPENNEUTRON_DELEGATE", raising=False)
    monkeypatch.delenv("OPENNEUTRON_UNTESTED", raising=False)


@pytest.mark.parametrize("installed", ["1.4.1", "1.50.0", "1.6.0", "2.0"])
def test_an_unsupported_one_is_refused(installed: str, monkeypatch: pytest.MonkeyPatch):
    pretend(monkeypatch, installed)
    with pytest.raises(OpenNeutronError, match=rf"executorch {installed} is installed, .* works with 1\.5"):
        versions.check_executorch()


@pytest.mark.parametrize("installed", ["1.5.0", "1.5.1+cpu"])
def test_the_tested_one_compiles(installed: str, monkeypatch: pytest.MonkeyPatch):
    pretend(monkeypatch, installed)
    assert versions.check_executorch() == "1.5"


def test_another_one_is_accepted_when_the_user_asks_for_it(monkeypatch: pytest.MonkeyPatch):
    pretend(monkeypatch, "1.6.0", built="1.6")
    monkeypatch.setenv("OPENNEUTRON_UNTESTED", "1")
    assert versions.check_delegate() == "1.6"


def test_the_delegate_runs_beside_the_one_it_was_built_for(monkeypatch: pytest.MonkeyPatch):
    pretend(monkeypatch, "1.5.1", built="1.6")
    with pytest.raises(OpenNeutronError, match=r"executorch 1\.5\.1 is installed; the delegate was built for 1\.6\.x"):
        versions.check_delegate()


def test_none_at_all_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    def nothing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(versions, "version", nothing)
    with pytest.raises(MissingExtraError, match=r"pip install 'openneutron\[executorch\]'"):
        versions.check_executorch()
