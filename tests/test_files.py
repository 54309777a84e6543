from __future__ import annotations

import os
from pathlib import Path

import pytest

from openneutron.errors import OptionError
from openneutron.files import check_replaceable, check_target, kind_of, make_folder, read_file, write_file


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"nothing\.tflite: there is no such file"):
        read_file(tmp_path / "nothing.tflite")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="this is a folder"):
        read_file(tmp_path)


def test_what_was_written_is_read_back_and_nothing_else_is_left(tmp_path: Path) -> None:
    write_file(tmp_path / "a.bin", b"\x00\x01")
    write_file(tmp_path / "a.bin", "zwei: ß")
    assert read_file(tmp_path / "a.bin") == "zwei: ß".encode()
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]


def test_new_files_have_the_rights_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "usual").write_bytes(b"")
    write_file(tmp_path / "ours", b"")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_file(tmp_path / "a.bin", b"old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OptionError, match=r"a\.bin: the file cannot be written \(No space left on device\)"):
        write_file(tmp_path / "a.bin", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]
    assert (tmp_path / "a.bin").read_bytes() == b"old"


def test_a_link_is_followed_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_devices_are_written_to_directly() -> None:
    write_file(os.devnull, b"gone")
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize(
    ("name", "message"),
    [("out.bin", "must end in .pte"), ("no/out.pte", "folder .* does not exist"), (".", "this is a folder")],
    ids=["suffix", "folder missing", "is a folder"],
)
def test_a_target_is_refused_before_the_work(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        check_target(tmp_path / name, ".pte")


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert make_folder(tmp_path / "a" / "b").is_dir()
    with pytest.raises(OptionError, match="cannot be made"):
        make_folder(tmp_path / "file" / "b")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x1c\0\0\0TFL3", "tflite"),
        (b"\x1c\0\0\0ET12", "pte"),
        (b"nMCd\0\0", "microcode"),
        (b"PK\x03\x04", "zip"),
        (b"", ""),
    ],
    ids=["tflite", "pte", "microcode", "zip", "empty"],
)
def test_kinds_are_known_by_their_first_bytes(data: bytes, kind: str) -> None:
    assert kind_of(data) == kind


def test_an_input_is_never_a_target_whatever_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(b"model")
    (tmp_path / "link.tflite").symlink_to("m.tflite")
    assert check_target(tmp_path / "new.tflite", inputs=[tmp_path / "m.tflite", None])
    for name in ("m.tflite", "link.tflite", "../" + tmp_path.name + "/m.tflite"):
        with pytest.raises(OptionError, match="inputs are never written over"):
            check_target(tmp_path / name, inputs=[tmp_path / "m.tflite"])


def test_only_results_of_a_compile_are_replaceable(tmp_path: Path) -> None:
    check_replaceable(tmp_path / "missing")
    for name, data in (
        ("a.tflite", b"....TFL3 NeutronGraph"),
        ("a.pte", b"....ET12"),
        ("a.html", b"OpenNeutron"),
        ("a", b""),
    ):
        (tmp_path / name).write_bytes(data)
        check_replaceable(tmp_path / name)
    for name, data in (("b.tflite", b"....TFL3"), ("b.pte", b"notes"), ("b.html", b"<html>")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(OptionError, match="--force"):
            check_replaceable(tmp_path / name)
