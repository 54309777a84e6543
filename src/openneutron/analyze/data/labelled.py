"""Labelled data named on the command line: an `.npz`, a folder with a folder per class, or the user's generator.

Example:
    >>> data = read_data("images/", Wanted((3, 32, 32)), limit=100)
    >>> data.x.shape
    (100, 3, 32, 32)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from openneutron.analyze.accuracy import Labelled, label_samples
from openneutron.analyze.data.arrays import read_arrays
from openneutron.errors import FormatError, OptionError
from openneutron.extras import extra

if TYPE_CHECKING:
    from openneutron.executorch.capture.sources import Loaded
    from openneutron.litert.graph import Graph

Array = npt.NDArray[Any]

IMAGES = {".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
_NPZ = (
    "give an .npz with x (samples) and y (classes), a folder with a folder per class, WebDataset .tar files, "
    "or package.module:generator"
)


@dataclass(frozen=True)
class Wanted:
    """The model's input: the shape of one sample without its batch dimension; images are scaled to it."""

    shape: tuple[int, ...]
    channels_last: bool = False

    def image(self, where: str) -> tuple[int, int, int]:
        """Return height, width and channels; raises an error if the model takes no images."""
        if len(self.shape) != 3:
            hint = "give .npy files of that shape, an .npz or a generator"
            raise OptionError(f"the model takes {list(self.shape)}, which is no image", where=where, hint=hint)
        channels, height, width = (self.shape[2], *self.shape[:2]) if self.channels_last else self.shape
        if channels not in (1, 3):
            hint = "give .npy files, an .npz or a generator"
            raise OptionError(f"the model takes {channels} channels, images have 1 or 3", where=where, hint=hint)
        return height, width, channels


def wanted_by(loaded: Loaded) -> Wanted:
    """Return the input of a PyTorch model for one sample; raises an error unless it has one input with a batch dimension."""
    inputs = loaded.example_inputs
    if inputs is None or len(inputs) != 1 or not inputs[0].ndim:
        raise OptionError("only float models with one input can be evaluated", where=loaded.name)
    return Wanted(tuple(inputs[0].shape[1:]))


def wanted_by_litert(graph: Graph, where: str) -> Wanted:
    """Return the input of a LiteRT model for one sample."""
    if len(graph.inputs) != 1:
        raise OptionError(f"only models with one input can be evaluated, this has {len(graph.inputs)}", where=where)
    return Wanted(tuple(graph.tensors[graph.inputs[0]].shape[1:]), channels_last=True)


def check_data(given: str | None, *, where: str, option: str = "--data") -> None:
    """Refuse invalid data names before anything slow begins."""
    if given is None:
        raise OptionError(f"{option} is missing", where=where, hint=_NPZ)
    path = Path(given)
    if any(one in given for one in "*{"):
        return  # several files; they are searched for when read
    if not path.exists() and (":" not in given or path.suffix in (".npz", ".npy", ".tar")):
        raise OptionError("there is no such file or folder", where=given, hint=_NPZ)


def read_data(given: str, wanted: Wanted, *, limit: int = 0, mean: str = "", std: str = "") -> Labelled:
    """Return the data at a path or import path, cut to the first `limit` samples (0: all).

    Images are scaled to the size the model takes, to 0 … 1, then `mean` is subtracted and divided by `std`, as given per
    channel: "0.485,0.456,0.406".
    """
    path = Path(given)
    if path.is_dir():
        return _of_folder(path, wanted, limit, numbers("--mean", mean, 0.0), numbers("--std", std, 1.0))
    if mean or std:
        raise OptionError("--mean and --std are for folders of images", where=given, hint="leave them out")
    return _of_file(path, limit) if path.exists() else _of_generator(given, limit)


def _of_file(path: Path, limit: int) -> Labelled:
    arrays = read_arrays(path)
    if not isinstance(arrays, dict) or not {"x", "y"} <= set(arrays):
        names = ", ".join(arrays) if isinstance(arrays, dict) else "no names"
        hint = "write it with np.savez(file, x=samples, y=classes)"
        raise OptionError(f"the file has {names or 'nothing'} instead of x and y", where=str(path), hint=hint)
    return label_samples(arrays["x"], arrays["y"], where=str(path), limit=limit)


def _of_folder(folder: Path, wanted: Wanted, limit: int, mean: Array, std: Array) -> Labelled:
    return of_files(list(islice(class_files(folder), limit or None)), wanted, mean, std, where=str(folder))


def of_files(found: list[tuple[Path, int]], wanted: Wanted, mean: Array, std: Array, *, where: str) -> Labelled:
    """Load image files with their classes as labelled samples."""
    return stack_samples([(_sample(file, wanted, mean, std), number) for file, number in found], where)


def stack_samples(found: list[tuple[Array, int]], where: str) -> Labelled:
    """Stack samples of one shape, with their classes."""
    shapes = {sample.shape for sample, _ in found}
    if len(shapes) > 1:
        raise OptionError(f"the arrays have different shapes: {sorted(shapes)}", where=where)
    return label_samples(np.stack([one for one, _ in found]), np.array([n for _, n in found], np.int64), where=where)


def class_files(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield files with their classes, the classes in turn, so that the first N files cover all of them.

    Classes are numbered in the order of their folders' names; if all names are numbers, these are the classes.
    """
    classes = sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    if not classes:
        hint = "make one folder per class: images/cat/1.png, images/dog/1.png, ..."
        raise OptionError("the folder has no folders of classes", where=str(folder), hint=hint)
    numbered = all(entry.name.isdigit() for entry in classes)
    kinds = {*IMAGES, ".npy"}
    rows = [
        [
            (file, int(entry.name) if numbered else at)
            for file in sorted(entry.iterdir())
            if file.suffix.lower() in kinds
        ]
        for at, entry in enumerate(classes)
    ]
    if not any(rows):
        raise OptionError("its folders hold no images and no .npy files", where=str(folder))
    for turn in range(max(map(len, rows))):
        yield from (row[turn] for row in rows if turn < len(row))


def _sample(file: Path, wanted: Wanted, mean: Array, std: Array) -> Array:
    if file.suffix.lower() == ".npy":
        (value,) = read_arrays(file)
        return np.asarray(value)
    return image_sample(file, str(file), wanted, mean, std)


def image_sample(file: Any, where: str, wanted: Wanted, mean: Array, std: Array) -> Array:
    """Load an image, from a path or an open file, in the model's input format."""
    height, width, channels = wanted.image(where)
    for option, values in (("--mean", mean), ("--std", std)):
        if len(values) not in (1, channels):
            raise OptionError(f"{option} has {len(values)} numbers, the model takes {channels} channels")
    with extra(f"reading {where}"):
        from PIL import Image
    try:
        with Image.open(file) as image:
            scaled = image.convert("RGB" if channels == 3 else "L").resize((width, height), Image.Resampling.BILINEAR)
            pixels = np.asarray(scaled, np.float32).reshape(height, width, channels) / np.float32(255)
    except (OSError, ValueError) as error:
        raise FormatError(f"the image cannot be read ({error})", where=where) from error
    value = (pixels - mean) / std
    return value if wanted.channels_last else np.ascontiguousarray(value.transpose(2, 0, 1))


def numbers(option: str, text: str, default: float) -> Array:
    """Parse the numbers of `--mean` or `--std`: one, or one per channel."""
    try:
        values = np.array([float(one) for one in text.split(",")] if text else [default], np.float32)
    except ValueError:
        values = np.array([], np.float32)
    if not len(values) or (option == "--std" and not values.all()):
        raise OptionError(f"{option} is {text!r}", hint="give one number, or one per channel: 0.485,0.456,0.406")
    return values


def read_generator(given: str) -> Iterator[tuple[Array, Array]]:
    """Yield the batches of the user's generator: a sample with its class, or a batch with its classes."""
    from openneutron.executorch.capture.sources import import_object

    try:
        made = import_object(given)
        for item in made() if callable(made) else made:
            x, y = item
            y = np.asarray(y)
            yield (np.asarray(x) if y.ndim else np.asarray(x)[None]), (y if y.ndim else y[None])
    except (OptionError, FormatError, GeneratorExit):
        raise
    except Exception as error:
        message = " ".join(str(error).split()) or "no message"
        raise OptionError(
            f"the generator failed: {type(error).__name__}: {message}", where=given,
            hint="it is called without arguments and yields (sample, class) or (batch, classes)",
        ) from error  # fmt: skip


def _of_generator(given: str, limit: int) -> Labelled:
    pairs: list[tuple[Array, Array]] = []
    for pair in read_generator(given):
        pairs.append(pair)
        if limit and sum(len(y) for _, y in pairs) >= limit:
            break
    return join_batches(pairs, given, limit)


def join_batches(pairs: list[tuple[Array, Array]], given: str, limit: int = 0) -> Labelled:
    """Concatenate the batches of a generator."""
    xs, ys = [x for x, _ in pairs], [y for _, y in pairs]
    if not xs:
        raise OptionError("the generator gave nothing", where=given, hint="it must yield (sample, class)")
    try:
        return label_samples(np.concatenate(xs), np.concatenate(ys), where=given, limit=limit)
    except ValueError:
        shapes = sorted({x.shape[1:] for x in xs})
        raise OptionError(f"the samples have different shapes: {shapes}", where=given) from None
