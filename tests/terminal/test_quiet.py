from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator

import pytest

from openneutron.terminal.quiet import quiet, settle, without_logs, without_native_chatter, without_torch_internals


@pytest.fixture(autouse=True)
def talking() -> Iterator[None]:
    """Logging as a fresh process has it: an example that ran in this one may have hidden warnings for good."""
    before = logging.root.manager.disable
    logging.disable(logging.NOTSET)
    yield
    logging.disable(before)


def test_inside_nothing_is_said_and_afterwards_everything_again(caplog: pytest.LogCaptureFixture) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with pytest.raises(ValueError, match="passes"), quiet():
            warnings.warn("an optional part is missing", stacklevel=1)
            logging.getLogger("torchao").warning("Failed to load")
            raise ValueError("passes")
        assert seen == [] and caplog.records == []
        warnings.warn("after", stacklevel=1)
        logging.getLogger("torchao").warning("after")
    assert len(seen) == 1 and len(caplog.records) == 1


def test_not_even_errors_are_logged_where_an_exception_tells_them(caplog: pytest.LogCaptureFixture) -> None:
    with without_logs():
        logging.getLogger("torch").error("inside")
    logging.getLogger("torch").error("afterwards")
    assert [one.message for one in caplog.records] == ["afterwards"]


def test_only_torchs_own_warning_is_hidden() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with without_torch_internals():
            warnings.warn("`isinstance(treespec, LeafSpec)` is deprecated", FutureWarning, stacklevel=1)
            warnings.warn("your model does something odd", UserWarning, stacklevel=1)
    assert [str(one.message) for one in seen] == ["your model does something odd"]


def test_a_script_is_quiet_unless_asked_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        monkeypatch.setattr(sys, "argv", ["script.py", "-v", "model"])
        settle()
        assert sys.argv == ["script.py", "model"]
        warnings.warn("heard", stacklevel=1)
        settle()
        warnings.warn("not heard", stacklevel=1)
        assert not logging.getLogger("torch").isEnabledFor(logging.WARNING)
        assert logging.getLogger("torch").isEnabledFor(logging.ERROR)
    assert [str(one.message) for one in seen] == ["heard"]


def test_native_errors_pass_and_news_do_not(capfd: pytest.CaptureFixture[str]) -> None:
    with without_native_chatter():
        os.write(2, b"INFO: Created TensorFlow Lite XNNPACK delegate for CPU.\nERROR: tensor 3 has no data\n")
    assert capfd.readouterr().err == "ERROR: tensor 3 has no data\n"
