"""A project's folder is complete or not there, and what is in the way is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from openneutron.errors import OptionError
from openneutron.project.write import MARK, check_folder, write_files

FILES = {"README.md": b"read", "a/b/c.txt": b"deep", MARK: b"{}"}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_all_files_are_written(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    assert write_files(FILES, folder) == [folder / name for name in FILES]
    assert contents(tmp_path) == {f"made/{name}": data for name, data in FILES.items()}


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    write_files(FILES, folder)
    assert contents(folder) == FILES


def test_a_folder_with_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "mine.txt").write_text("mine")
    with pytest.raises(OptionError, match=r"not empty.*--force"):
        write_files(FILES, tmp_path / "made")
    assert contents(tmp_path) == {"made/mine.txt": b"mine"}


def test_force_replaces_a_project_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    write_files(FILES | {"old.txt": b"old"}, folder)
    write_files(FILES, folder, force=True)
    assert contents(tmp_path) == {f"made/{name}": data for name, data in FILES.items()}
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("mine")
    with pytest.raises(OptionError, match=r"holds no project.json"):
        write_files(FILES, other, force=True)
    assert contents(other) == {"mine.txt": b"mine"}


@pytest.mark.parametrize("fail_at", ["a/b/c.txt", MARK])
def test_a_failure_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fail_at: str) -> None:
    folder = tmp_path / "made"
    write_files({MARK: b"old"}, folder)
    write = Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        if path.as_posix().endswith(fail_at):
            raise OSError(28, "No space left on device")
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OptionError, match=r"cannot be written .No space left"):
        write_files(FILES, folder, force=True)
    assert contents(tmp_path) == {f"made/{MARK}": b"old"}
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_an_old_project_comes_back_when_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "made"
    write_files({MARK: b"old"}, folder)
    rename = Path.rename

    def refuse(path: Path, target: Path) -> Path:
        if target == folder and path.name != "old":
            raise OSError(16, "Device or resource busy")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(OptionError, match="cannot be written"):
        write_files(FILES, folder, force=True)
    assert contents(tmp_path) == {f"made/{MARK}": b"old"}


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    (tmp_path / "link").symlink_to(tmp_path)
    for name, reason in (("file", "no folder"), ("link", "no folder"), ("absent/made", "does not exist")):
        with pytest.raises(OptionError, match=reason):
            check_folder(tmp_path / name, force=True)
