"""Words as inputs: letters of Indonesian words, and the state of a network that is spelling their sounds.

Words for calibration and for the measurement are different ones.

Example:
    >>> next_sound(rng, "tested")[0].shape  # the sound before, one of 32; then the state
    (1, 1, 32)
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np

from tests.accuracy.packages import place
from tests.accuracy.pictures import Role
from tests.accuracy.sounds import open_session

_FOLDER = "g2p_id/models/lstm"
_MOST_LETTERS = 24
_WORDS: dict[Role, tuple[str, ...]] = {
    "calibration": (
        "selamat", "pagi", "terima", "kasih", "rumah", "sekolah", "membaca", "buku", "kereta", "jalan", "makanan", "hujan",
        "matahari", "keluarga", "pekerjaan", "menyanyi", "bunga", "nyamuk", "syarat", "tidak", "berangkat", "perempuan",
    ),
    "tested": (
        "malam", "pasar", "bertanya", "sungai", "anak", "menunggu", "jendela", "kucing", "pelajaran", "garam", "minuman",
        "dengan", "berjalan", "gunung", "penyakit", "khusus", "lautan", "sahabat", "mengerti", "kemarin", "bangsa",
    ),
}  # fmt: skip


def next_sound(rng: np.random.Generator, role: Role) -> tuple[Any, Any, Any]:
    """The sound that was spelt last and the state, somewhere in a word."""
    word = str(rng.choice(_WORDS[role]))
    letters = np.zeros((1, _MOST_LETTERS, len(_numbers("g2id.json"))), np.float32)
    for at, letter in enumerate(word.ljust(_MOST_LETTERS)):
        letters[0, at, _numbers("g2id.json")[letter]] = 1
    state = _run("encoder_model.onnx", input_1=letters)
    last = _one_sound(_numbers("p2id.json")["\t"])
    for _ in range(int(rng.integers(0, len(word)))):
        scores, *state = _run("decoder_model.onnx", input_2=last, input_3=state[0], input_4=state[1])
        last = _one_sound(int(scores[0, -1].argmax()))
    return (last, *state)


def _one_sound(number: int) -> Any:
    made = np.zeros((1, 1, len(_numbers("p2id.json"))), np.float32)
    made[0, 0, number] = 1
    return made


@cache
def _numbers(name: str) -> dict[str, int]:
    found: dict[str, int] = json.loads(place("g2p-id-py", f"{_FOLDER}/{name}").read_text("utf-8"))
    return found


def _run(name: str, **given: Any) -> list[Any]:
    found: list[Any] = open_session("g2p-id-py", f"{_FOLDER}/{name}").run(None, given)
    return found
