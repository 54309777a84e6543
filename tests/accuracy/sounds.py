"""Sounds as inputs: speech by espeak-ng (of a PyPI package), plucked strings, and what networks make of sound.

Sentences and voices for calibration and for the measurement are different ones.

Example:
    >>> speech(rng, "tested", 16000).shape  # one second, numbers from -1 to 1
    (16000,)
"""

from __future__ import annotations

import ctypes
import hashlib
from functools import cache
from typing import Any

import numpy as np

from tests.accuracy.packages import FOLDER, place
from tests.accuracy.pictures import Role

RATE = 16000
# Of espeak-ng's speak_lib.h: synchronous, to a callback; positions in characters; text in UTF-8.
_TO_FUNCTION, _BY_CHARACTER, _UTF8 = 2, 1, 1
_ON_SAMPLES = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)
_VOICES: dict[Role, tuple[str, ...]] = {
    "calibration": ("en-us", "en+f2", "de", "fr+f4", "en-us+m3"),
    "tested": ("en", "en-us+f3", "es", "it+m2", "en-gb-scotland+m7"),
}
_SENTENCES: dict[Role, tuple[str, ...]] = {
    "calibration": (
        "The river was high after three days of rain, and nobody crossed the old bridge.",
        "Please turn the light off in the kitchen. Alexa, what time is it in Lisbon?",
        "Seven trains leave before noon; the last one is the slowest of all.",
    ),
    "tested": (
        "A small dog ran along the beach while the fishermen were mending their nets.",
        "Could you remind me to call the dentist tomorrow? Alexa, set a timer for ten minutes.",
        "We bought bread, cheese, and two bottles of water at the market.",
    ),
}


def speech(rng: np.random.Generator, role: Role, samples: int, rate: int = RATE) -> Any:
    """Part of a spoken sentence, louder or softer, with a little noise of a room; silence one time of eight."""
    sound = _spoken(str(rng.choice(_SENTENCES[role])), str(rng.choice(_VOICES[role])), rate)
    if rng.random() < 0.125:
        sound = np.zeros(samples, np.float32)
    while len(sound) < samples:
        sound = np.concatenate([sound, np.zeros(rate // 4, np.float32), sound])
    start = int(rng.integers(0, len(sound) - samples + 1))
    made = sound[start : start + samples] * rng.uniform(0.2, 1.0) + rng.normal(0, rng.uniform(0.0003, 0.01), samples)
    return np.clip(made, -1, 1).astype(np.float32)


def wake_word(rng: np.random.Generator, role: Role, samples: int, word: str) -> Any:
    """Half of the time the wake word at the end of the sound, else other speech."""
    sound = speech(rng, role, samples)
    if rng.random() < 0.5:
        said = _spoken(word, str(rng.choice(_VOICES[role])), RATE)[-samples:]
        sound = rng.normal(0, 0.001, samples).astype(np.float32)
        sound[-len(said) :] += said * rng.uniform(0.4, 1.0)
    return sound


def strings(rng: np.random.Generator, samples: int, rate: int) -> Any:
    """Plucked strings (Karplus and Strong, 1983): a few notes, some of them together."""
    made = np.zeros(samples, np.float32)
    for _ in range(int(rng.integers(4, 12))):
        note = 440 * 2 ** ((int(rng.integers(40, 85)) - 69) / 12)
        start, period = int(rng.integers(0, samples - rate // 4)), max(2, round(rate / note))
        made[start:] += _plucked(rng, period, samples - start) * rng.uniform(0.2, 0.6)
    return np.clip(made, -1, 1)


def _plucked(rng: np.random.Generator, period: int, samples: int) -> Any:
    """A ring of noise that is smoothed a little each time round."""
    ring = rng.uniform(-1, 1, period).astype(np.float32)
    rounds = [ring]
    for _ in range(samples // period):
        ring = 0.498 * (ring + np.roll(ring, 1))
        rounds.append(ring)
    return np.concatenate(rounds)[:samples]


@cache
def _spoken(sentence: str, voice: str, rate: int) -> Any:
    """A sentence by espeak-ng at this rate; kept on disk beside the packages."""
    name = hashlib.sha256(f"{sentence} {voice} {rate}".encode()).hexdigest()[:16]
    kept = FOLDER / "speech" / f"{name}.npy"
    if kept.exists():
        return np.load(kept)
    made = _speak(sentence, voice, rate)
    kept.parent.mkdir(parents=True, exist_ok=True)
    np.save(kept, made)
    return made


def _speak(sentence: str, voice: str, rate: int) -> Any:
    """Let the library of the package espeakng-loader speak a sentence."""
    from scipy.signal import resample_poly

    library, own_rate = _library()
    parts: list[Any] = []

    def keep(samples: Any, count: int, _: Any) -> int:
        if samples and count:
            parts.append(np.ctypeslib.as_array(samples, (count,)).copy())
        return 0

    callback = _ON_SAMPLES(keep)
    library.espeak_SetSynthCallback(callback)
    text = sentence.encode()
    done = library.espeak_SetVoiceByName(voice.encode()) or library.espeak_Synth(
        text, ctypes.c_size_t(len(text) + 1), 0, _BY_CHARACTER, 0, _UTF8, None, None
    )
    if done or not parts:
        raise RuntimeError(f"espeak-ng cannot speak as {voice!r} (status {done})")
    found = np.concatenate(parts).astype(np.float32) / 32768
    return resample_poly(found, rate, own_rate).astype(np.float32)


@cache
def _library() -> tuple[Any, int]:
    """Load espeak-ng, which gives its samples to a function; returns it with its sampling rate."""
    folder = place("espeakng-loader", "espeakng_loader")
    library = ctypes.CDLL(str(folder / "libespeak-ng.so"))
    rate = library.espeak_Initialize(_TO_FUNCTION, 0, str(folder / "espeak-ng-data").encode(), 0)
    if rate <= 0:
        raise RuntimeError(f"espeak-ng does not start (status {rate})")
    return library, rate


def log_mel(sound: Any, bands: int, frames: int, window: int = 321, hop: int = 160) -> Any:
    """Slaney's mel bands as DNSMOS and AECMOS take them: decibels below the loudest, 40 of them as 1."""
    power = np.abs(_frames(sound, window, hop, frames)) ** 2
    level = 10 * np.log10(np.maximum(_mel_bands(bands, window) @ power.T, 1e-10)).T
    level = np.maximum(level - level.max(), -80)
    return ((level + 40) / 40).astype(np.float32)


def log_power(sound: Any, frames: int) -> Any:
    """The power of the bins of a 20 ms window in tens, as NSNet2 takes it."""
    power = np.abs(_frames(sound, 320, 160, frames)) ** 2
    return np.log10(np.maximum(power, 1e-12)).astype(np.float32)


def _frames(sound: Any, window: int, hop: int, frames: int) -> Any:
    padded = np.pad(sound, (window // 2, window))
    cut = np.stack([padded[hop * at : hop * at + window] for at in range(frames)])
    return np.fft.rfft(cut * np.hanning(window + 1)[:-1], axis=1)


@cache
def _mel_bands(bands: int, window: int) -> Any:
    """Triangles over Slaney's scale: even up to 1 kHz, even in the logarithm above, each of the same area."""
    step, corner, log_step = 200 / 3, 1000.0, np.log(6.4) / 27
    top = corner / step + np.log(RATE / 2 / corner) / log_step
    mels = np.linspace(0, top, bands + 2)
    edges = np.where(mels < corner / step, mels * step, corner * np.exp(log_step * (mels - corner / step)))
    bins = np.fft.rfftfreq(window, 1 / RATE)
    low, middle, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    triangles = np.maximum(0, np.minimum((bins - low) / (middle - low), (high - bins) / (high - middle)))
    return triangles * (2 / (high - low))


def echo(rng: np.random.Generator, role: Role, frames: int) -> Any:
    """What the far side says, the microphone with its echo, and the microphone after a canceller that leaves some of it."""
    samples, late = 256 * frames, int(rng.integers(400, 2400))
    far, near = speech(rng, role, samples), speech(rng, role, samples)
    heard = np.convolve(far, rng.normal(0, 1, 200) * np.exp(-np.arange(200) / 40))[:samples] * rng.uniform(0.05, 0.3)
    heard = np.concatenate([np.zeros(late), heard[:-late]])
    sides = far, near + heard, near + heard * rng.uniform(0.0, 0.5)
    return np.stack([log_mel(np.clip(one, -1, 1), 160, frames, 513, 256) for one in sides]).astype(np.float32)


def wake_bands(sound: Any) -> Any:
    """The bands that openWakeWord's embedding takes, by its own network for them."""
    (found,) = open_session("openwakeword", "openwakeword/resources/models/melspectrogram.onnx").run(
        None, {"input": sound[None] * 32767}
    )
    return found.reshape(-1, 32) / 10 + 2


def wake_embeddings(sound: Any) -> Any:
    """Sixteen embeddings, 80 ms apart, by openWakeWord's own network."""
    bands = wake_bands(sound)
    windows = np.stack([bands[8 * at : 8 * at + 76] for at in range(16)])[..., None].astype(np.float32)
    embed = open_session("openwakeword", "openwakeword/resources/models/embedding_model.onnx")
    return embed.run(None, {"input_1": windows})[0].reshape(1, 16, 96)


def voice_chunk(rng: np.random.Generator, role: Role) -> tuple[Any, Any]:
    """A chunk of speech for Silero's detector, and the state that it has come to on the chunks before."""
    session = open_session("silero-vad", "silero_vad/data/silero_vad.onnx")
    sound, chunks = speech(rng, role, 64 + 512 * 16), int(rng.integers(1, 17))
    state = np.zeros((2, 1, 128), np.float32)
    for at in range(chunks):
        chunk = sound[512 * at : 512 * at + 576][None]
        before = state
        _, state = session.run(None, {"input": chunk, "state": state, "sr": np.array(RATE, np.int64)})
    return chunk, before


@cache
def open_session(package: str, file: str) -> Any:
    """onnxruntime's session of a network of a package."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    return onnxruntime.InferenceSession(str(place(package, file)), options, providers=["CPUExecutionProvider"])
