"""The process that runs NXP's SDK: `python -m openneutron.nxp.worker FOLDER`.

FOLDER, which is also the working directory, holds `request.json` and `model.tflite`; the worker writes `answer.json` and
`converted.tflite` there, beside files of the SDK itself. A crash or a hang ends only this process.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

REQUEST, MODEL, ANSWER, CONVERTED = "request.json", "model.tflite", "answer.json", "converted.tflite"
PACKAGE = "eiq_neutron_sdk"
# Newest first: module and function that convert a model in the known versions of the SDK.
SPELLINGS = (("neutron_compiler", "compileModel"), ("neutron_converter", "convertModel"))
TARGET_FIELDS = ("subsystem", "numUnits", "numPipes", "numMacs", "hwVersion")


class Refused(Exception):
    """Raised when the request cannot be served; `kind` tells the parent which error to raise."""

    def __init__(self, kind: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.kind, self.message, self.hint = kind, message, hint


def _import_sdk() -> ModuleType:
    try:
        package = importlib.import_module(PACKAGE)
    except ModuleNotFoundError as error:
        if error.name == PACKAGE:
            raise Refused("missing", f"the package {PACKAGE} is not installed in this Python") from None
        raise Refused("broken", f"{PACKAGE} is installed but needs {error.name!r}, which is not") from error
    except Exception as error:
        raise Refused("broken", f"{PACKAGE} is installed but cannot be imported: {error}") from error
    if getattr(package, "OPENNEUTRON_COMPATIBILITY", False):
        raise Refused("missing", f"the installed {PACKAGE} is OpenNeutron's compatibility package, not NXP's")
    return package


def _module(package: ModuleType, name: str) -> Any:
    """Return a part of the SDK, a module or an attribute; None if this version lacks it."""
    try:
        return importlib.import_module(f"{PACKAGE}.{name}")
    except ModuleNotFoundError:
        return getattr(package, name, None)


def _member(package: ModuleType, name: str) -> Any:
    """Return a class or function of the SDK, wherever this version has it."""
    for part in (*(module for module, _ in SPELLINGS), "neutron_library_utils"):
        found = getattr(_module(package, part), name, None)
        if found is not None:
            return found
    return getattr(package, name, None)


def _require(package: ModuleType, name: str) -> Any:
    found = _member(package, name)
    if found is None:
        raise Refused("broken", f"the installed {PACKAGE} has no {name}", "OpenNeutron does not know this SDK version")
    return found


def _function(package: ModuleType) -> Any:
    for module, name in SPELLINGS:
        found = getattr(_module(package, module), name, None)
        if found is not None:
            return found
    names = " or ".join(f"{module}.{name}" for module, name in SPELLINGS)
    raise Refused("broken", f"the installed {PACKAGE} has no {names}", "OpenNeutron does not know this SDK version")


def _target(package: ModuleType, name: str) -> Any:
    known = _member(package, "getNeutronTargets")
    names = [str(target.name) for target in known()] if known is not None else []
    is_target = _member(package, "isNeutronTarget")
    hint = f"its targets are {', '.join(names)}" if names else "see the SDK's list of targets"
    if is_target is not None and not is_target(name):
        raise Refused("option", f"NXP's SDK does not know the target {name!r}", hint)
    try:
        return _require(package, "getNeutronTarget")(name)
    except Refused:
        raise
    except Exception as error:
        raise Refused("option", f"NXP's SDK does not accept the target {name!r}: {error}", hint) from error


def _describe(target: Any) -> dict[str, int]:
    """Return the array's figures, from `.npu` or, in older SDKs, from the target itself."""
    holder = getattr(target, "npu", target)
    return {field: int(getattr(holder, field)) for field in TARGET_FIELDS if hasattr(holder, field)}


def _known_options(options: Any) -> list[str]:
    names = [name for name in dir(options) if not name.startswith("_")]
    return [name for name in names if not callable(getattr(options, name))]


def _convert_value(name: str, value: Any, current: Any) -> Any:
    """Return `value` in the attribute's type; strings from the command line are parsed as numbers and booleans."""
    if not isinstance(value, str):
        return str(value) if isinstance(current, str) else value
    if isinstance(current, bool):
        words = {"": True, "1": True, "true": True, "on": True, "0": False, "false": False, "off": False}
        if value.lower() not in words:
            raise Refused("option", f"option {name} is {value!r}", "it is a switch: true or false")
        return words[value.lower()]
    if isinstance(current, (int, float)):
        try:
            return type(current)(value)
        except ValueError:
            kind = "a whole number" if isinstance(current, int) else "a number"
            raise Refused("option", f"option {name} is {value!r}", f"it is {kind}") from None
    return value


def _set_options(options: Any, wanted: list[dict[str, Any]]) -> None:
    for item in wanted:
        name, value = item["name"], item["value"]
        if not hasattr(options, name):
            if item["optional"]:
                continue
            known = ", ".join(_known_options(options))
            raise Refused("option", f"NXP's converter of this SDK has no option {name!r}", f"its options are {known}")
        try:
            setattr(options, name, _convert_value(name, value, getattr(options, name)))
        except (TypeError, ValueError, AttributeError) as error:
            raise Refused("option", f"NXP's converter refused {name} = {value!r}: {error}") from error


def _version(package: ModuleType) -> str:
    try:
        return importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return str(getattr(package, "__version__", ""))


def _as_bytes(result: Any) -> bytes:
    try:
        return bytes(result)
    except (TypeError, ValueError) as error:
        raise Refused("failed", f"the SDK returned {type(result).__name__}, not the bytes of a model") from error


def serve(folder: Path) -> dict[str, Any]:
    """Convert the model in `folder` as its request says; returns the answer."""
    request = json.loads((folder / REQUEST).read_text("utf-8"))
    package = _import_sdk()
    function = _function(package)
    context = _require(package, "CompilationContext")()
    target = _target(package, request["target"])
    context.targetOpts = target
    _set_options(context.compilationOpts, request["options"])
    try:
        result = function(list((folder / MODEL).read_bytes()), context)
    except Exception as error:
        # The log gets the whole traceback, the user a sentence.
        traceback.print_exc()
        raise Refused("failed", f"{type(error).__name__}: {error}") from error
    (folder / CONVERTED).write_bytes(_as_bytes(result))
    return {"kind": "ok", "version": _version(package), "target": _describe(target)}


def main(folder: str) -> None:
    """Serve one request and write the answer into the folder."""
    path = Path(folder)
    try:
        answer = serve(path)
    except Refused as refused:
        answer = {"kind": refused.kind, "message": refused.message, "hint": refused.hint}
    sys.stdout.flush()
    (path / ANSWER).write_text(json.dumps(answer), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
