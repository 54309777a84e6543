"""One sentence for every ExecuTorch that is not the right one."""

from importlib.metadata import PackageNotFoundError

import pytest

from openneutron.errors import MissingExtraError, OpenNeutronError
from openneutron.executorch import versions


def pretend(monkeypatch: pytest.MonkeyPatch, installed: str, built: str = "1.5") -> None:
    monkeypatch.setattr(versions, "version", lambda name: installed)
    monkeypatch.setattr(versions, "delegate_built_for", lambda: built)
    monkeypatch.delenv("OPENNEUTRON_DELEGATE", raising=False)


@pytest.mark.parametrize("installed", ["1.3.1", "1.6.0", "2.0"])
def test_an_unsupported_one_is_refused(installed: str, monkeypatch: pytest.MonkeyPatch):
    pretend(monkeypatch, installed)
    with pytest.raises(OpenNeutronError, match=rf"executorch {installed} is installed, .* works with 1\.4 and 1\.5"):
        versions.check_executorch()


def test_both_newest_minor_versions_compile(monkeypatch: pytest.MonkeyPatch):
    for installed, minor in (("1.4.1+cpu", "1.4"), ("1.5.0", "1.5")):
        pretend(monkeypatch, installed)
        assert versions.check_executorch() == minor


def test_the_delegate_runs_beside_the_one_it_was_built_for(monkeypatch: pytest.MonkeyPatch):
    pretend(monkeypatch, "1.4.1", built="1.5")
    with pytest.raises(OpenNeutronError, match=r"executorch 1\.4\.1 is installed; the delegate was built for 1\.5\.x"):
        versions.check_delegate()
    pretend(monkeypatch, "1.4.1", built="1.4")
    assert versions.check_delegate() == "1.4"


def test_none_at_all_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    def nothing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(versions, "version", nothing)
    with pytest.raises(MissingExtraError, match=r"pip install 'openneutron\[executorch\]'"):
        versions.check_executorch()
