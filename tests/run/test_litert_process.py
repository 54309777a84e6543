"""LiteRT in a process of its own; what hostile models do there is in tests/hostile/test_litert.py."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

from openneutron.errors import OpenNeutronError, RuntimeFailure
from openneutron.run import litert_process
from tests import tiny


def test_one_process_serves_all_and_a_new_one_follows() -> None:
    first = litert_process.load(tiny.floats(), reference=True, seconds=60)
    second = litert_process.load(tiny.floats(), reference=False, seconds=60)
    assert first._process is second._process and second.alive
    x = np.ones((1, 6), np.float32)
    (ours,), (theirs,) = first.run([x], seconds=60), second.run([x], seconds=60)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    ours[:] = 0  # writable, as an array of one's own
    first.close()
    second.run([x], seconds=0)
    os.kill(second._process._process.pid, signal.SIGKILL)
    with pytest.raises(RuntimeFailure, match=r"crashed \(SIGKILL\)"):
        second.run([x], seconds=60)
    assert not second.alive
    second.close()
    assert litert_process.load(tiny.floats(), reference=True, seconds=60)._process is not second._process


def test_what_litert_says() -> None:
    with pytest.raises(litert_process.Refused, match="not a valid"):
        litert_process.load(b"no model", reference=True, seconds=60)
    session = litert_process.load(tiny.floats(), reference=True, seconds=60)
    with pytest.raises(litert_process.Refused, match="Dimension mismatch"):
        session.run([np.ones((1, 7), np.float32)], seconds=60)
    assert session.alive


def test_errors() -> None:
    missing = litert_process._error({"error": "ModuleNotFoundError", "text": "No module"})
    assert isinstance(missing, OpenNeutronError) and "pip install" in str(missing)
    assert "OPENNEUTRON_MEMORY" in str(litert_process._error({"error": "MemoryError"}))


def test_a_fork_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    session = litert_process.load(tiny.floats(), reference=True, seconds=60)
    owner = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: owner + 1)
    assert not session.alive
