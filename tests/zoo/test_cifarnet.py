"""CifarNet: its exact shape, its data, and the accuracy of the weights that are shipped."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from openneutron import zoo
from openneutron.errors import FormatError, OptionError
from openneutron.zoo import _cifar10, _store
from openneutron.zoo.cifarnet import CifarNet, preprocess


@pytest.fixture(scope="module")
def cifarnet() -> zoo.ZooModel:
    return zoo.load("cifarnet")


def top1(model: nn.Module, images: zoo.LabelledImages) -> float:
    with torch.no_grad():
        answers = model(images.inputs).argmax(dim=1).numpy()
    return float((answers == images.labels).mean())


def test_float_accuracy_is_at_least_75_percent_on_the_committed_images(cifarnet: zoo.ZooModel) -> None:
    assert top1(cifarnet.model, cifarnet.test_images()) >= 0.75


def test_layers_are_exactly_cifarnet() -> None:
    layers = [layer for layer in CifarNet().modules() if not list(layer.children())]
    block = [nn.Conv2d, nn.ReLU, nn.MaxPool2d]
    assert [type(layer) for layer in layers] == [*block, *block, *block, nn.Flatten, nn.Linear, nn.Softmax]
    convolutions = [layer for layer in layers if isinstance(layer, nn.Conv2d)]
    assert [(c.in_channels, c.out_channels) for c in convolutions] == [(3, 32), (32, 32), (32, 64)]
    assert all((c.kernel_size, c.padding, c.stride) == ((5, 5), (2, 2), (1, 1)) for c in convolutions)
    assert sum(parameter.numel() for parameter in CifarNet().parameters()) == 89_578


def test_model_is_in_eval_mode_and_answers_probabilities(cifarnet: zoo.ZooModel) -> None:
    assert cifarnet.trained
    assert not cifarnet.model.training
    with torch.no_grad():
        answer = cifarnet.model(*cifarnet.example_inputs)
    assert answer.shape == (1, 10)
    assert answer.sum().item() == pytest.approx(1.0, abs=1e-5)


def test_test_images_are_1000_labelled_cifar_images(cifarnet: zoo.ZooModel) -> None:
    images = cifarnet.test_images()
    assert len(images) == 1000
    assert images.images.shape == (1000, 32, 32, 3)
    assert images.images.dtype == images.labels.dtype == np.uint8
    # The CIFAR-10 test set begins with a cat, two ships and an airplane.
    assert images.labels[:4].tolist() == [3, 8, 8, 0]
    assert set(images.labels.tolist()) == set(range(10))


def test_calibration_is_200_single_images_20_of_each_class(cifarnet: zoo.ZooModel) -> None:
    assert len(cifarnet.calibration) == 200
    assert all(len(inputs) == 1 and inputs[0].shape == (1, 3, 32, 32) for inputs in cifarnet.calibration)
    assert np.bincount(_cifar10.calibration_images().labels).tolist() == [20] * 10


def test_calibration_and_test_images_are_disjoint(cifarnet: zoo.ZooModel) -> None:
    tested = {image.tobytes() for image in cifarnet.test_images().images}
    assert not tested & {image.tobytes() for image in _cifar10.calibration_images().images}


def test_calibration_reaches_both_ends_of_the_input_range(cifarnet: zoo.ZooModel) -> None:
    everything = torch.cat([inputs[0] for inputs in cifarnet.calibration])
    assert everything.min().item() == -1.0
    assert everything.max().item() == 127 / 128


def test_preprocess_is_exact_in_int8() -> None:
    pixels = np.arange(256, dtype=np.uint8)
    images = np.resize(pixels, (1, 32, 32, 3))
    inputs = preprocess(images)
    assert inputs.shape == (1, 3, 32, 32)
    assert inputs.dtype == torch.float32
    quantized = (inputs * 128).to(torch.int32).permute(0, 2, 3, 1).numpy()
    assert np.array_equal(quantized, images.astype(np.int32) - 128)


@pytest.mark.parametrize(
    "images",
    [
        pytest.param(np.zeros((1, 3, 32, 32), np.uint8), id="channels first"),
        pytest.param(np.zeros((32, 32, 3), np.uint8), id="no batch"),
        pytest.param(np.zeros((1, 32, 32, 3), np.float32), id="float"),
    ],
)
def test_preprocess_refuses(images: np.ndarray) -> None:
    with pytest.raises(OptionError, match=r"expected uint8 images of shape \[N, 32, 32, 3\]"):
        preprocess(images)


def test_missing_weights_are_named(tmp_path) -> None:
    with pytest.raises(FormatError, match=r"gone\.npz: the file is missing"):
        _store.load_weights(CifarNet(), tmp_path / "gone.npz")


def test_damaged_weights_are_named(tmp_path) -> None:
    path = tmp_path / "torn.npz"
    whole = _store.packaged_path("weights", "cifarnet.npz").read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FormatError, match=r"torn\.npz: the file is damaged"):
        _store.load_weights(CifarNet(), path)


def test_weights_of_another_model_are_refused(tmp_path) -> None:
    path = tmp_path / "other.npz"
    np.savez(path, weight=np.zeros(3))
    with pytest.raises(FormatError, match="its entries are not those of the model"):
        _store.load_weights(CifarNet(), path)


def test_weights_of_another_shape_are_refused(tmp_path) -> None:
    path = tmp_path / "wide.npz"
    arrays = _store.read_arrays(_store.packaged_path("weights", "cifarnet.npz"))
    arrays["classifier.bias"] = np.zeros(11, np.float32)
    np.savez(path, **arrays)
    with pytest.raises(FormatError, match=r"classifier\.bias has shape \(11,\), the model needs \(10,\)"):
        _store.load_weights(CifarNet(), path)
