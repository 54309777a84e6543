"""Thousands of damaged files: each is read or refused with a FormatError, quickly."""

import struct

import numpy as np
import pytest

from openneutron.errors import FormatError
from openneutron.litert import read_model, write_model
from tests.litert.samples import SAMPLES
from tests.work import calls

# Calls within which a damaged file must be answered; a sample that is whole takes some thousands.
MOST_CALLS = 200_000


def attempt(data: bytes) -> bool:
    """True when the file was read; any exception but FormatError fails the test."""
    accepted = True

    def read() -> None:
        nonlocal accepted
        try:
            read_model(data)
        except FormatError as problem:
            assert str(problem).startswith("<bytes>")
            accepted = False

    assert calls(read) < MOST_CALLS
    return accepted


@pytest.mark.parametrize("name", SAMPLES)
def test_truncation(name):
    data = write_model(SAMPLES[name]())
    assert not any(attempt(data[:end]) for end in range(0, len(data) // 2, 7))
    for end in range(len(data) // 2, len(data), 7):
        attempt(data[:end])


@pytest.mark.parametrize("name", SAMPLES)
def test_every_byte_inverted(name):
    data = write_model(SAMPLES[name]())
    refused = 0
    for position in range(len(data)):
        mutant = bytearray(data)
        mutant[position] ^= 0xFF
        refused += not attempt(bytes(mutant))
    assert refused > len(data) // 20


@pytest.mark.parametrize("name", SAMPLES)
def test_random_flips(name):
    data = write_model(SAMPLES[name](), buffers_after=name == "convolution")
    rng = np.random.default_rng(7)
    outcomes = set()
    for _ in range(800):
        mutant = bytearray(data)
        for position in rng.integers(0, len(data), rng.integers(1, 6)):
            mutant[position] ^= 1 << int(rng.integers(8))
        outcomes.add(attempt(bytes(mutant)))
    assert outcomes == {True, False}


@pytest.mark.parametrize("name", SAMPLES)
def test_corrupted_words(name):
    data = write_model(SAMPLES[name]())
    rng = np.random.default_rng(11)
    words = [0, 1, 4, len(data) - 4, len(data), 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1]
    outcomes = set()
    for position in range(0, len(data) - 4, 4):
        for word in (words[rng.integers(len(words))], int(rng.integers(len(data)))):
            mutant = bytearray(data)
            struct.pack_into("<I", mutant, position, word)
            outcomes.add(attempt(bytes(mutant)))
    assert outcomes == {True, False}


def test_noise():
    rng = np.random.default_rng(3)
    for size in range(0, 2000, 13):
        noise = bytearray(rng.bytes(size))
        assert not attempt(bytes(noise))
        noise[4:8] = b"TFL3"
        assert not attempt(bytes(noise))


@pytest.mark.real
def test_real_models_damaged(real_model):
    data = real_model.read_bytes()
    rng = np.random.default_rng(5)
    for end in rng.integers(0, len(data), 100):
        attempt(data[:end])
    # Tables sit at the ends of a file; the middle is weights, where any byte is valid.
    edges = np.r_[0 : min(len(data), 1 << 16), max(0, len(data) - (1 << 16)) : len(data)]
    for _ in range(500):
        mutant = bytearray(data)
        for position in rng.choice(edges, 4):
            mutant[position] = int(rng.integers(256))
        attempt(bytes(mutant))
