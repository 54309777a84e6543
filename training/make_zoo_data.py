"""Write the CIFAR-10 images that travel with the zoo.

Test images are the first 1,000 of the test set, in its order. Calibration images are 200 of the training set, 20 of
each class, drawn with a fixed seed.

    python training/make_zoo_data.py --cache build/cifar10
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import cifar10
import numpy as np
from weights import ZOO, save_arrays

TEST_COUNT = 1000
CALIBRATION_PER_CLASS = 20
SEED = 10


def calibration(train: cifar10.Split) -> cifar10.Split:
    """Draw the calibration images, shuffled so that any prefix is roughly balanced."""
    random = np.random.default_rng(SEED)
    per_class = [np.flatnonzero(train.labels == k) for k in range(len(cifar10.CLASSES))]
    chosen = np.concatenate([random.choice(members, CALIBRATION_PER_CLASS, replace=False) for members in per_class])
    chosen = random.permutation(chosen)
    return cifar10.Split(train.images[chosen], train.labels[chosen])


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the zoo's CIFAR-10 images.")
    parser.add_argument("--cache", type=Path, required=True, help="folder for the data set")
    arguments = parser.parse_args()
    try:
        data = cifar10.load(arguments.cache)
    except cifar10.DatasetError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    test = cifar10.Split(data.test.images[:TEST_COUNT], data.test.labels[:TEST_COUNT])
    for name, split in (("cifar10_test_1000", test), ("cifar10_calibration_200", calibration(data.train))):
        path = ZOO / "data" / f"{name}.npz"
        save_arrays(path, {"images": split.images, "labels": split.labels})
        print(f"{path.name}: {len(split.labels)} images, {path.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
