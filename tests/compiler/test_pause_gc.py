from __future__ import annotations

import gc

import pytest

from openneutron.compiler.pause_gc import pause_gc


def test_the_collector_is_paused_and_comes_back() -> None:
    assert gc.isenabled()
    with pause_gc():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError), pause_gc():
        raise ValueError
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with pause_gc():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
