from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from openneutron.errors import OptionError
from openneutron.executorch.capture.batches import check_data


class Two(torch.nn.Module):
    def forward(self, image: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return image * mask


class One(torch.nn.Module):
    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return image


IMAGES = torch.arange(4 * 3 * 2 * 2).reshape(4, 3, 2, 2).float()
LABELS = torch.arange(4)
EXAMPLE = (IMAGES[:1],)
WANTED = list(IMAGES.split(1))

FORMS: dict[str, Callable[[], Any]] = {
    "loader with labels": lambda: DataLoader(TensorDataset(IMAGES, LABELS), batch_size=2),
    "dataset of single samples": lambda: TensorDataset(IMAGES, LABELS),
    "one tensor of all": lambda: IMAGES,
    "one array of all, in 64 bits": lambda: IMAGES.double().numpy(),
    "arrays": lambda: [image.numpy() for image in WANTED],
    "mappings with labels": lambda: [{"image": IMAGES[:2], "label": 1}, {"label": 2, "image": IMAGES[2:].numpy()}],
    "generator": lambda: ((image, "label") for image in WANTED),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_calibration_data_as_people_have_it(form: Callable[[], Any]) -> None:
    given = check_data(One(), EXAMPLE, form(), trained=False)
    assert given.batches is not None
    assert all(torch.equal(one, wanted) for (one,), wanted in zip(given.batches, WANTED, strict=True))


def test_labels_are_left_out_with_a_note() -> None:
    given = check_data(One(), EXAMPLE, [(IMAGES, LABELS)], trained=False)
    assert given.notes == ("calibration batches have 2 parts, the model takes 1: the others were taken for labels",)
    assert check_data(One(), EXAMPLE, [IMAGES], trained=False).notes == ()


def test_inputs_by_name_come_in_the_order_of_forward() -> None:
    mask = torch.ones(1, 3, 2, 2)
    given = check_data(
        Two(), {"mask": mask.numpy(), "image": IMAGES[:1]}, [{"mask": mask, "image": IMAGES[:1]}], trained=False
    )
    assert given.inputs is not None and torch.equal(given.inputs[0], IMAGES[:1]) and torch.equal(given.inputs[1], mask)


@pytest.mark.parametrize(
    ("examples", "calibration", "message"),
    [
        ({"mask": IMAGES[:1]}, [IMAGES], "example_inputs has mask, and no image"),
        ({}, [IMAGES], "example_inputs has no inputs"),
        (({"image": "a"},), [IMAGES], r"example_inputs\[0\] is a str.*tensors or numpy arrays"),
        (({"image": IMAGES},), [IMAGES], r"calibration\[0\] is not built as example_inputs.*image_image"),
        (EXAMPLE, {"image": IMAGES}, "calibration is a dict"),
        (EXAMPLE, [(LABELS, IMAGES)], r"calibration\[0\] is torch\.int64 \[4\]"),
        (EXAMPLE, [np.array(["a"])], r"calibration\[0\] is a ndarray"),
    ],
    ids=["first missing", "empty", "nested", "not nested", "mapping of all", "labels first", "texts"],
)
def test_what_does_not_fit_is_refused(examples: Any, calibration: Any, message: str) -> None:
    model = Two() if isinstance(examples, dict) else One()
    with pytest.raises(OptionError, match=message):
        check_data(model, examples, calibration, trained=False)
