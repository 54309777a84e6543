"""Pictures as inputs: parts of scikit-image's photographs, faces among them, and pages of text.

Pictures for calibration and for the measurement are different ones, or different parts of one.

Example:
    >>> photograph(rng, "tested", 160, 160).shape  # numbers from 0 to 255
    (160, 160, 3)
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import numpy as np

from tests.accuracy.packages import place

Role = Literal["calibration", "tested"]

_PHOTOGRAPHS: dict[Role, tuple[str, ...]] = {
    "calibration": ("chelsea.png", "coffee.png", "rocket.jpg", "motorcycle_left.png", "brick.png", "clock_motion.png"),
    "tested": ("motorcycle_right.png", "coins.png", "camera.png", "gravel.png", "ihc.png", "grass.png"),
}
_PAGES: dict[Role, str] = {"calibration": "page.png", "tested": "text.png"}
_FACE = (225, 108, 100)  # of the astronaut, in the photograph's pixels: middle and width
_FACES = 100  # of the small ones; scikit-image has as many patches without a face behind them
_IMAGENET_MEAN, _IMAGENET_STD = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])


def photograph(rng: np.random.Generator, role: Role, height: int, width: int) -> Any:
    """A part of a photograph."""
    image = _opened(str(rng.choice(_PHOTOGRAPHS[role])))
    share = rng.uniform(0.4, 1.0)
    tall, wide = int(image.height * share), int(image.width * share)
    left, top = rng.integers(0, image.width - wide + 1), rng.integers(0, image.height - tall + 1)
    return _scaled(image.crop((left, top, left + wide, top + tall)), height, width)


def person(rng: np.random.Generator, role: Role, height: int, width: int, *, close: bool = False) -> Any:
    """The astronaut, or a small face of many; `close` shows the head and nothing else. Tested ones are mirrored."""
    if rng.random() < 0.5:
        number = int(rng.integers(_FACES // 2)) + (_FACES // 2 if role == "tested" else 0)
        small = (_small_faces()[number] * 255).astype(np.uint8)
        image = _image(np.repeat(small[..., None], 3, axis=2))
    else:
        x, y, face = _FACE
        side = face * (rng.uniform(1.2, 1.7) if close else rng.uniform(1.7, 4.0))
        x, y = x + face * rng.uniform(-0.1, 0.1), y + face * rng.uniform(-0.1, 0.1)
        image = _opened("astronaut.png").crop(
            tuple(round(at) for at in (x - side / 2, y - side / 2, x + side / 2, y + side / 2))
        )
        if role == "tested":
            image = _image(np.asarray(image)[:, ::-1])
    return np.clip(_scaled(image, height, width) * rng.uniform(0.7, 1.2), 0, 255).astype(np.float32)


def people_and_things(rng: np.random.Generator, role: Role, height: int, width: int) -> Any:
    """A person three times of four, else another photograph."""
    return (person if rng.random() < 0.75 else photograph)(rng, role, height, width)


def page(rng: np.random.Generator, role: Role, height: int, width: int, *, lines: int = 0) -> Any:
    """A photographed page (one time of four), or drawn lines of text; `lines` fixes how many."""
    if not lines and rng.random() < 0.25:
        image = _opened(_PAGES[role])
        wide = int(image.width * rng.uniform(0.4, 1.0))
        tall = min(image.height, wide * height // width)
        left, top = rng.integers(0, image.width - wide + 1), rng.integers(0, image.height - tall + 1)
        return _scaled(image.crop((left, top, left + wide, top + tall)), height, width)
    return _drawn_text(rng, height, width, lines or int(rng.integers(2, 6)))


def _drawn_text(rng: np.random.Generator, height: int, width: int, lines: int) -> Any:
    from PIL import Image, ImageDraw, ImageFont

    dark, light = (int(one) for one in (rng.integers(0, 90), rng.integers(150, 256)))
    back, front = (light, dark) if rng.random() < 0.8 else (dark, light)
    drawn = Image.new("RGB", (width, height), (back,) * 3)
    pen = ImageDraw.Draw(drawn)
    letters = list("ABCDEFGHKLMNOPRSTUWabcdefghiklmnoprstuvwz 0123456789")
    for line in range(lines):
        words = "".join(rng.choice(letters) for _ in range(24))
        font = ImageFont.load_default(max(height / lines * rng.uniform(0.5, 0.85), 8))
        pen.text((rng.uniform(0, 0.1) * width, line * height / lines), words, fill=(front,) * 3, font=font)
    grain = rng.normal(0, 3, (height, width, 3))
    return np.clip(np.asarray(drawn, np.float32) + grain, 0, 255).astype(np.float32)


def imagenet(picture: Any) -> Any:
    """A picture by ImageNet's mean and deviation, channels first."""
    return ((picture / 255 - _IMAGENET_MEAN) / _IMAGENET_STD).transpose(2, 0, 1).astype(np.float32)


def halves(picture: Any) -> Any:
    """A picture as numbers from -1 to 1."""
    return (picture / 127.5 - 1).astype(np.float32)


def channels_first(picture: Any) -> Any:
    """A picture with its channels in front."""
    return np.ascontiguousarray(picture.transpose(2, 0, 1), np.float32)


@cache
def _opened(name: str) -> Any:
    from PIL import Image

    with Image.open(place("scikit-image", f"skimage/data/{name}")) as opened:
        return opened.convert("RGB")


@cache
def _small_faces() -> Any:
    return np.load(place("scikit-image", "skimage/data/lfw_subset.npy"))


def _image(pixels: Any) -> Any:
    from PIL import Image

    return Image.fromarray(np.ascontiguousarray(pixels))


def _scaled(image: Any, height: int, width: int) -> Any:
    from PIL import Image

    return np.asarray(image.resize((width, height), Image.Resampling.BICUBIC), np.float32)
