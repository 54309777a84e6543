"""The augmentation of the training loop moves pixels and changes none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch):
    # The scripts of that folder import each other by bare name, as they do when started from the command line.
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "training"))
    import loop

    return loop


def test_without_shift_an_image_stays_or_is_mirrored(loop) -> None:
    images = np.random.default_rng(0).integers(0, 256, (64, 32, 32, 3), dtype=np.uint8)
    result = loop.augment(images, 0, np.random.default_rng(1))
    kept = [np.array_equal(a, b) for a, b in zip(result, images, strict=True)]
    mirrored = [np.array_equal(a, b[:, ::-1]) for a, b in zip(result, images, strict=True)]
    assert all(one != other for one, other in zip(kept, mirrored, strict=True))
    assert 16 < sum(mirrored) < 48


def test_shift_moves_by_at_most_the_limit_and_fills_with_grey(loop) -> None:
    images = np.zeros((200, 32, 32, 3), np.uint8)
    images[:, 16, 16] = 255
    result = loop.augment(images, 3, np.random.default_rng(2))
    places = np.argwhere(result[..., 0] == 255)[:, 1:]
    assert len(places) == 200
    assert places[:, 0].min() == 13 and places[:, 0].max() == 19
    # Mirrored, column 16 becomes 15.
    assert places[:, 1].min() == 12 and places[:, 1].max() == 19
    assert set(np.unique(result)) == {0, 128, 255}


def test_same_seed_same_images(loop) -> None:
    images = np.random.default_rng(0).integers(0, 256, (8, 32, 32, 3), dtype=np.uint8)
    first = loop.augment(images, 3, np.random.default_rng(5))
    assert np.array_equal(first, loop.augment(images, 3, np.random.default_rng(5)))
