"""Recognize model files of other tools and say how to get a file that can be compiled.

Example:
    >>> refuse_unsupported_file(Path("model.h5"))
    Traceback (most recent call last):
    openneutron.errors.FormatError: model.h5: this is a Keras model (HDF5). Hint: convert it to LiteRT in INT8 first: ...
"""

from __future__ import annotations

from pathlib import Path

from openneutron.errors import FormatError

_HDF5 = b"\x89HDF\r\n\x1a\n"
_TO_LITERT = (
    "convert it to LiteRT in INT8 first: tf.lite.TFLiteConverter with optimizations, a representative dataset and "
    "TFLITE_BUILTINS_INT8"
)
_CHECKPOINT = (
    "this is no exported program: torch.save wrote it, so it holds weights or a pickled module",
    "load it in a function that makes the model and name that (package.module:factory), or write "
    "torch.export.save(torch.export.export(model, example_inputs), file)",
)
# Endings that say enough; what is inside decides first.
_BY_ENDING = {
    ".h5": ("this is a Keras model (HDF5)", _TO_LITERT),
    ".keras": ("this is a Keras model", _TO_LITERT),
    ".pb": ("this is a TensorFlow graph", _TO_LITERT),
    ".safetensors": (
        "this is a file of weights without a model",
        "openneutron.load_weights puts them into a module, in a function that makes the model: package.module:factory",
    ),
}


def refuse_unsupported_file(path: Path) -> None:
    """Raise a `FormatError` that says how to convert the model, when the path holds another tool's; else do nothing."""
    found = _in_folder(path) if path.is_dir() else _in_file(path) if path.is_file() else None
    if found:
        raise FormatError(found[0], where=str(path), hint=found[1])


def _in_folder(path: Path) -> tuple[str, str] | None:
    if (path / "saved_model.pb").is_file() or (path / "saved_model.pbtxt").is_file():
        return "this is a TensorFlow SavedModel", _TO_LITERT
    return None


def _in_file(path: Path) -> tuple[str, str] | None:
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except OSError:
        return None  # the reader that follows reports why it cannot be read
    if head == _HDF5:
        return _BY_ENDING[".h5"]
    if head[:2] == b"PK" and path.suffix != ".pt2":
        return _in_archive(path)
    return _BY_ENDING.get(path.suffix) if head[4:8] != b"TFL3" else None


def _in_archive(path: Path) -> tuple[str, str] | None:
    import zipfile  # as slow to import as reading a model, and few files are archives

    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return None
    if "model.weights.h5" in names:
        return _BY_ENDING[".keras"]
    inside = {name.partition("/")[2] for name in names}
    if "data.pkl" in inside and "constants.pkl" in inside:
        return "this is a TorchScript archive", _CHECKPOINT[1]
    return _CHECKPOINT if "data.pkl" in inside else None
