"""Labelled data from files, folders and generators."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from openneutron.analyze.data.labelled import Wanted, read_data
from openneutron.errors import OpenNeutronError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def images(folder: Path) -> Path:
    """Two classes, the second with more images, of other sizes than the model's 8x8."""
    for name, shades in {"cats": (0, 255), "dogs": (51, 102, 204)}.items():
        (folder / "images" / name).mkdir(parents=True)
        for at, shade in enumerate(shades):
            Image.new("RGB", (16, 12), (shade, shade, 255 - shade)).save(folder / "images" / name / f"{at}.png")
    (folder / "images" / "cats" / "notes.txt").write_text("no image")
    return folder / "images"


def test_a_folder_is_read_one_of_each_class_in_turn(images: Path) -> None:
    data = read_data(str(images), Wanted((3, 8, 8)))
    assert data.x.shape == (5, 3, 8, 8) and data.x.dtype == np.float32
    assert data.y.tolist() == [0, 1, 0, 1, 1]
    assert data.x[:, 0, 0, 0].tolist() == pytest.approx([0, 51 / 255, 1, 102 / 255, 204 / 255])
    assert read_data(str(images), Wanted((3, 8, 8)), limit=2).y.tolist() == [0, 1]


def test_images_are_normalized_and_laid_out_as_the_model_takes_them(images: Path) -> None:
    data = read_data(str(images), Wanted((8, 8, 3), channels_last=True), limit=1, mean="0.5,0.5,0", std="0.5")
    assert data.x.shape == (1, 8, 8, 3)
    assert data.x[0, 0, 0].tolist() == [-1.0, -1.0, 2.0]
    assert read_data(str(images), Wanted((1, 8, 8)), limit=1).x.shape == (1, 1, 8, 8)


def test_arrays_of_a_folder_are_taken_as_they_are_and_folders_may_be_numbers(folder: Path) -> None:
    for number in (3, 10):
        (folder / "sounds" / str(number)).mkdir(parents=True)
        np.save(folder / "sounds" / str(number) / "a.npy", np.full((4, 5), number, np.int8))
    data = read_data(str(folder / "sounds"), Wanted((4, 5)))
    assert data.x.dtype == np.int8 and sorted(zip(data.x[:, 0, 0].tolist(), data.y.tolist(), strict=True)) == [
        (3, 3),
        (10, 10),
    ]


GENERATORS = """
    import numpy as np

    def samples():
        for at in range(4):
            yield np.full((2, 3), at, np.float32), at

    def batches():
        yield np.zeros((3, 2, 3), np.float32), np.array([0, 1, 2])
        yield np.zeros((2, 2, 3), np.float32), np.array([3, 4])

    def fails():
        yield np.zeros((2, 3), np.float32), 0
        raise RuntimeError("the disk is full")

    def nothing():
        return iter(())

    def ragged():
        yield np.zeros((2, 3)), 0
        yield np.zeros((2, 4)), 1

    def unlabelled():
        yield np.zeros(5)
"""


@pytest.fixture
def generators(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "own_data.py").write_text(textwrap.dedent(GENERATORS))
    monkeypatch.syspath_prepend(folder)


@pytest.mark.parametrize(
    ("name", "limit", "classes"), [("samples", 0, [0, 1, 2, 3]), ("samples", 2, [0, 1]), ("batches", 4, [0, 1, 2, 3])]
)
def test_a_generator_gives_samples_or_batches(generators: None, name: str, limit: int, classes: list[int]) -> None:
    data = read_data(f"own_data:{name}", Wanted((2, 3)), limit=limit)
    assert data.y.tolist() == classes and data.x.shape == (len(classes), 2, 3)


@pytest.mark.parametrize(
    ("name", "message"),
    {
        "fails": "the generator failed: RuntimeError: the disk is full",
        "nothing": "the generator gave nothing",
        "ragged": "the samples have different shapes",
        "unlabelled": "the generator failed: ValueError",
        "missing": "own_data has no 'missing'",
    }.items(),
)
def test_a_generator_that_cannot_be_used_is_one_sentence(generators: None, name: str, message: str) -> None:
    with pytest.raises(OpenNeutronError, match=message):
        read_data(f"own_data:{name}", Wanted((2, 3)))


def test_folders_that_cannot_be_used_are_one_sentence(images: Path, folder: Path) -> None:
    (folder / "empty").mkdir()
    (folder / "bare" / "cats").mkdir(parents=True)
    (folder / "broken" / "cats").mkdir(parents=True)
    (folder / "broken" / "cats" / "a.png").write_bytes(b"no image")
    for path, wanted, options, message in (
        ("empty", Wanted((3, 8, 8)), {}, "no folders of classes"),
        ("bare", Wanted((3, 8, 8)), {}, "no images and no .npy files"),
        ("broken", Wanted((3, 8, 8)), {}, "a.png: the image cannot be read"),
        ("images", Wanted((4, 5)), {}, "which is no image"),
        ("images", Wanted((5, 8, 8)), {}, "takes 5 channels"),
        ("images", Wanted((3, 8, 8)), {"mean": "0.5,0.5"}, "--mean has 2 numbers"),
        ("images", Wanted((3, 8, 8)), {"std": "0"}, "--std is '0'"),
        ("images", Wanted((3, 8, 8)), {"mean": "grey"}, "--mean is 'grey'"),
    ):
        with pytest.raises(OpenNeutronError, match=message):
            read_data(str(folder / path), wanted, **options)
