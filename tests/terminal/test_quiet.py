from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator

import pytest

from openneutron.terminal.quiet import quiet, without_torch_internals


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


def test_only_torchs_own_warning_is_hidden() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with without_torch_internals():
            warnings.warn("`isinstance(treespec, LeafSpec)` is deprecated", FutureWarning, stacklevel=1)
            warnings.warn("your model does something odd", UserWarning, stacklevel=1)
    assert [str(one.message) for one in seen] == ["your model does something odd"]
