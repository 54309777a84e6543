"""Shards of every kind of data hold the same samples as reading it all at once."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest

from openneutron.analyze.data.labelled import Wanted
from openneutron.analyze.data.shards import Reading, shards_of
from openneutron.errors import OpenNeutronError

WANTED = Wanted((2, 3))
X = np.arange(42, dtype=np.float32).reshape(7, 2, 3)
Y = np.arange(7) % 3


def archive(file: Path, members: dict[str, bytes]) -> None:
    with tarfile.open(file, "w") as out:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            out.addfile(info, io.BytesIO(data))


def npy(x: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, x)
    return out.getvalue()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    np.savez("all.npz", x=X, y=Y)
    Path("parts").mkdir()
    for at in range(2):
        np.savez(f"parts/{at}.npz", x=X[at * 4 : at * 4 + 4], y=Y[at * 4 : at * 4 + 4])
        members: dict[str, bytes] = {}
        for one in range(at * 4, min(at * 4 + 4, 7)):
            label = {"cls": str(Y[one]).encode()} if one % 2 else {"json": json.dumps({"label": int(Y[one])}).encode()}
            members |= {f"s/{one:04}.npy": npy(X[one])} | {f"s/{one:04}.{key}": data for key, data in label.items()}
        archive(Path(f"d-{at:02}.tar"), members)
    Path("gen.py").write_text(
        "import numpy as np\ndef samples():\n    d = np.load('all.npz')\n    yield from zip(d['x'], d['y'])\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    ("given", "count"),
    [("all.npz", 3), ("parts", 2), ("parts/*.npz", 2), ("d-{00..01}.tar", 2), ("d-*.tar", 2), ("gen:samples", 3)],
)
def test_all_samples_in_order(place: Path, given: str, count: int) -> None:
    found = list(shards_of(given, WANTED, Reading(size=3)))
    data = [shard.load() for shard in found]
    assert len(found) == count and all(shard.name for shard in found)
    assert np.array_equal(np.concatenate([one.x for one in data]), X)
    assert np.array_equal(np.concatenate([one.y for one in data]), Y)


def test_folders_of_classes_are_read_when_their_turn_comes(place: Path) -> None:
    for at in range(3):
        Path("classes", str(at)).mkdir(parents=True)
        np.save(Path("classes", str(at), "1.npy"), X[at])
    Path("classes", "2", "1.npy").write_bytes(b"damaged")
    first, second = shards_of("classes", WANTED, Reading(size=2))
    assert list(first.load().y) == [0, 1]
    with pytest.raises(OpenNeutronError, match=r"1\.npy"):
        second.load()


def test_images_in_an_archive(place: Path) -> None:
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(np.full((4, 4, 3), 255, np.uint8)).save(out, "PNG")
    archive(Path("i.tar"), {"a.png": out.getvalue(), "a.cls": b"4"})
    (shard,) = shards_of("i.tar", Wanted((3, 2, 2)), Reading(mean="0.5", std="0.5"))
    assert np.array_equal(shard.load().x, np.ones((1, 3, 2, 2), np.float32)) and list(shard.load().y) == [4]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({}, "has no samples"),
        ({"a.npy": npy(X[0])}, r"b\.tar, a: it has no class"),
        ({"a.cls": b"1"}, "no image or .npy"),
        ({"a.npy": npy(X[0]), "a.cls": b"cat"}, "its class cannot be read"),
        ({"a.npy": b"\x93NUMPY", "a.cls": b"1"}, "the array cannot be read"),
        ({"a.npy": npy(X[0]), "a.cls": b"1", "b.npy": npy(X), "b.cls": b"1"}, "different shapes"),
    ],
    ids=["empty", "class", "sample", "text", "damaged", "shapes"],
)
def test_bad_archives_are_named(place: Path, members: dict[str, bytes], message: str) -> None:
    archive(Path("b.tar"), members)
    (shard,) = shards_of("b.tar", WANTED, Reading())
    with pytest.raises(OpenNeutronError, match=message):
        shard.load()


@pytest.mark.parametrize(("given", "message"), [("e-{0..1}.tar", "no such file"), ("broken.tar", "cannot be read")])
def test_files_that_are_missing_or_no_archives(place: Path, given: str, message: str) -> None:
    Path("broken.tar").write_bytes(b"no archive" * 100)
    with pytest.raises(OpenNeutronError, match=message):
        next(iter(shards_of(given, WANTED, Reading()))).load()
    with pytest.raises(OpenNeutronError, match="matches nothing"):
        next(iter(shards_of("gone-*.npz", WANTED, Reading())))
    with pytest.raises(OpenNeutronError, match="--mean and --std"):
        next(iter(shards_of("all.npz", WANTED, Reading(mean="0.5"))))
