"""CIFAR-10 images of the package, and the preprocessing shared by all CIFAR models of the zoo."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from openneutron.errors import OptionError
from openneutron.zoo._model import LabelledImages
from openneutron.zoo._store import packaged_path, read_arrays

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def preprocess(images: NDArray[np.uint8]) -> torch.Tensor:
    """Turn uint8 [N, 32, 32, 3] into float32 [N, 3, 32, 32] as ``(pixel - 128) / 128``.

    Scale 1/128 and offset 128 make the INT8 input quantization exact: the quantized value is ``pixel - 128``, so no
    accuracy is lost at the input, and padding with zeros pads with mid-grey.

    >>> preprocess(np.full((1, 32, 32, 3), 192, np.uint8)).unique()
    tensor([0.5000])
    """
    if images.ndim != 4 or images.shape[1:] != (32, 32, 3) or images.dtype != np.uint8:
        raise OptionError(f"expected uint8 images of shape [N, 32, 32, 3], got {images.dtype} {list(images.shape)}")
    channels_first = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    return (torch.from_numpy(channels_first).to(torch.float32) - 128.0) / 128.0


def test_images() -> LabelledImages:
    """Return the first 1,000 images of the CIFAR-10 test set."""
    return _read_labelled("cifar10_test_1000.npz")


def calibration_images() -> LabelledImages:
    """Return 200 images of the CIFAR-10 *training* set, 20 of each class."""
    return _read_labelled("cifar10_calibration_200.npz")


def calibration_inputs() -> list[tuple[torch.Tensor, ...]]:
    """Return the calibration images as single-image model inputs, for networks exported with batch size 1."""
    return [(image,) for image in calibration_images().inputs.split(1)]


def _read_labelled(file: str) -> LabelledImages:
    arrays = read_arrays(packaged_path("data", file))
    return LabelledImages(arrays["images"].astype(np.uint8), arrays["labels"].astype(np.uint8), preprocess)
