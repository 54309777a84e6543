"""Models and variants of a session: what is kept, what is refused, what is removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from openneutron.errors import OptionError
from openneutron.studio import session as module
from openneutron.studio.session import Session, describe_model, safe_stem


@pytest.fixture
def session(tmp_path: Path):
    with Session(tmp_path) as made:
        yield made


def test_everything_is_removed_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path))
    with Session() as session:
        model = session.add_bytes("../../a b.tflite", b"x")
        assert Path(model.source).read_bytes() == b"x" and session.folder in Path(model.source).parents
        session.add_variant(model.id, "v", {}, {"program": b"y"}, {})
    assert list(tmp_path.iterdir()) == []


def test_names_are_shown_without_folders_and_kept_off_the_page(session: Session) -> None:
    model = session.add_bytes("../x/\x1b[1mmy\u202e model.tflite", b"x")
    assert model.name == "[1mmy model.tflite" and "source" not in describe_model(model)
    assert safe_stem("../..") == "model" and safe_stem("ä/б.tflite") == "б"


@pytest.mark.parametrize("name", ["model.h5", "model", ".tflite", "model.tflite.exe", ""])
def test_other_files_are_refused(session: Session, name: str) -> None:
    with pytest.raises(OptionError, match=r"give \.tflite, \.onnx, \.pte, \.pt2"):
        session.add_bytes(name, b"x")


def test_bounds(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_UPLOAD_BYTES", 3)
    monkeypatch.setattr(module, "MOST_MODELS", 2)
    monkeypatch.setattr(module, "MOST_VARIANTS", 1)
    with pytest.raises(OptionError, match="4 bytes are over the page's 3"):
        session.add_bytes("a.tflite", b"1234")
    one = session.add_bytes("a.tflite", b"1")
    session.add_variant(one.id, "v", {"target": "a"}, {}, {})
    session.add_variant(one.id, "v", {"target": "a"}, {}, {})  # the same again takes its place
    with pytest.raises(OptionError, match=r"1 variants of a\.tflite"):
        session.add_variant(one.id, "w", {"target": "b"}, {}, {})
    session.add_bytes("b.tflite", b"1")
    with pytest.raises(OptionError, match="2 models"):
        session.add_bytes("c.tflite", b"1")
    assert len([path for path in session.folder.iterdir() if path.is_dir()]) == 2


def test_calibration_data_makes_variants_stale(session: Session) -> None:
    model = session.add_bytes("a.tflite", b"1")
    variant = session.add_variant(model.id, "v", {}, {"program": b"y"}, {})
    assert session.attach(model.id, "data.npz", b"2").calibration
    assert session.variants(model.id) == [] and not variant.folder.exists()
    with pytest.raises(OptionError, match="compile the model again"):
        session.variant(variant.id)
    session.remove(model.id)
    with pytest.raises(OptionError, match="drop its file again"):
        session.model(model.id)


def test_a_zoo_model_is_there_once_and_a_file_must_exist(session: Session, tmp_path: Path) -> None:
    assert session.add_zoo("cifarnet") == session.add_zoo("cifarnet")
    with pytest.raises(OptionError, match="no such file"):
        session.add_path(tmp_path / "none.onnx")


def test_only_exported_programs_need_trust(session: Session) -> None:
    assert session.add_bytes("a.pt2", b"1").untrusted
    assert not session.add_bytes("a.onnx", b"1").untrusted
