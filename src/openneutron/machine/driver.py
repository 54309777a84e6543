"""Binds the C structs and functions of libopenneutron with ctypes; use `openneutron.machine.simulator` instead of this."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

from openneutron.errors import OpenNeutronError, OptionError, RuntimeFailure
from openneutron.machine import structs
from openneutron.machine.native import library_path

# A library to use in place of the installed one: a debug or sanitizer build.
LIBRARY_VARIABLE = "OPENNEUTRON_LIBRARY"
TIMEOUT_DEFAULT = 2**32 - 1  # NEUTRON_TIMEOUT_DEFAULT: what OPENNEUTRON_TIMEOUT says, or a minute
_DETAIL_BYTES = 256  # the driver's longest sentence has 200

_u8, _u16, _u32, _i32, _u64 = ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_int32, ctypes.c_uint64
_pointer = ctypes.c_void_p


class ModelConfig(ctypes.Structure):
    """NeutronModelConfig."""

    _fields_ = (("microcode", _pointer), ("weights", _pointer), ("kernels", _pointer), ("timeoutSeconds", _u32))


class ModelSizes(ctypes.Structure):
    """NeutronModelSizes."""

    _fields_ = tuple((n, ctypes.c_size_t) for n in ("microcode", "weights", "kernels", "scratch", "prefetch"))


class DataConfig(ctypes.Structure):
    """NeutronDataConfig; the arrays are kept alive by the object itself. Scratch is outputs[nOut], never `scratch`."""

    _fields_ = (
        ("inputs", ctypes.POINTER(_pointer)),
        ("outputs", ctypes.POINTER(_pointer)),
        ("scratch", _pointer),
        ("scratchWeights", _pointer),
    )


class TensorInfo(ctypes.Structure):
    """NeutronTensorInfo."""

    _fields_ = (
        *((n, _u8) for n in ("isOutput", "index", "dtype", "rank")),
        ("bytes", _u32),
        ("zeroPoint", _i32),
        ("scale", ctypes.c_float),
        ("dims", _u32 * 8),
    )


class ModelInfo(ctypes.Structure):
    """NeutronModelInfo."""

    _fields_ = (
        ("target", ctypes.c_char * 17),
        *((n, _u32) for n in ("formatVersion", "converterVersion", "inputs", "outputs", "scratchBytes")),
        *((n, _u32) for n in ("prefetchBytes", "profileBytes", "debugBytes", "tcmBytes", "stateBytes")),
        ("calls", _u32),
        ("profiling", ctypes.c_bool),
    )


class Event(ctypes.Structure):
    """NeutronEvent."""

    _fields_ = structs.ctypes_fields(structs.EVENT)


class MachineCost(ctypes.Structure):
    """nm_cost."""

    _fields_ = structs.ctypes_fields(structs.COST)


class MachineTarget(ctypes.Structure):
    """nm_target with its nm_constants, flattened."""

    _fields_ = structs.ctypes_fields(structs.TARGET, structs.CONSTANTS)


EventSink = ctypes.CFUNCTYPE(None, _pointer, ctypes.POINTER(Event))

_size = ctypes.c_size_t
_PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "neutronErrorString": (ctypes.c_char_p, (_i32,)),
    "neutronErrorName": (ctypes.c_char_p, (_i32,)),
    "neutronErrorAt": (ctypes.c_bool, (_u32, _pointer)),
    "neutronModelErrorDetail": (ctypes.c_char_p, (_pointer,)),
    "neutronModelCheck": (_i32, (_pointer, _pointer, ctypes.c_char_p, _size)),
    "neutronGetModelContextSize": (_size, (_pointer, _size)),
    "neutronGetLeastContextSize": (_i32, (_pointer, _pointer, _pointer)),
    "neutronModelPrepareChecked": (_i32, (_pointer, _pointer, _pointer)),
    "neutronModelUnprepare": (_i32, (_pointer,)),
    "neutronModelGetInfo": (_i32, (_pointer, _pointer)),
    "neutronModelGetTensor": (_i32, (_pointer, _u32, _pointer)),
    "neutronRunBlocking": (_i32, (_pointer, _pointer)),
    "neutronRunEach": (_i32, (_pointer, _size, _pointer, _size, _pointer)),
    "neutronSetThreads": (_i32, (_pointer, _u32)),
    "neutronSetFill": (_i32, (_pointer, _u8)),
    "neutronSetEventSink": (_i32, (_pointer, EventSink, _pointer)),
    "neutronGetCycles": (_i32, (_pointer, _pointer)),
    "neutronGetTcm": (_i32, (_pointer, _pointer, _pointer)),
    "neutronStateReset": (_i32, (_pointer,)),
    "neutronStateGet": (_i32, (_pointer, _pointer, _pointer)),
    "neutronStateSet": (_i32, (_pointer, _pointer, _size)),
    "neutronKernelName": (ctypes.c_char_p, (_u32,)),
    "nm_target_find": (_pointer, (ctypes.c_char_p,)),
    "nm_dma_cost": (MachineCost, (_pointer, _u64, _u64)),
    "nm_cycles": (_u64, (_pointer,)),
    "nm_encoded_call_cost": (_i32, (_pointer, _pointer, _size, _i32, _i32, _u64, _pointer)),
}


@cache
def library() -> ctypes.CDLL:
    """The loaded library, with typed functions."""
    named = os.environ.get(LIBRARY_VARIABLE)
    path = Path(named) if named else library_path()
    try:
        loaded = ctypes.CDLL(str(path))
        for name, (result, arguments) in _PROTOTYPES.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        hint = f"unset {LIBRARY_VARIABLE}" if named else "run `make setup` in the project's root"
        raise OpenNeutronError(f"the native library cannot be used: {error}", where=str(path), hint=hint) from None
    return loaded


def check(error: int, handle: ctypes.c_void_p | None = None, where: str = "") -> None:
    """Raise `RuntimeFailure` with the driver's sentence and detail unless `error` is 0."""
    if error:
        detail = library().neutronModelErrorDetail(handle) if handle else b""
        raise _failure(error, detail, where)


def _failure(error: int, detail: bytes, where: str) -> RuntimeFailure:
    sentence = library().neutronErrorString(error).decode()
    text = detail.decode(errors="replace")
    return RuntimeFailure(f"{sentence} ({text})" if text else sentence, where=where, code=error)


def prepare(config: ModelConfig, sizes: ModelSizes, where: str) -> ctypes.c_void_p:
    """A handle, to be given back with `unprepare`."""
    handle = ctypes.c_void_p()
    blocks = ctypes.byref(config), ctypes.byref(sizes)
    error = library().neutronModelPrepareChecked(*blocks, ctypes.byref(handle))
    if error:
        detail = ctypes.create_string_buffer(_DETAIL_BYTES)
        library().neutronModelCheck(*blocks, detail, _DETAIL_BYTES)
        raise _failure(error, detail.value, where)
    return handle


def unprepare(handle: ctypes.c_void_p) -> None:
    """Release a handle."""
    library().neutronModelUnprepare(handle)


def cycles(handle: ctypes.c_void_p) -> int:
    """Simulated cycles of the last run."""
    found = _u64()
    check(library().neutronGetCycles(handle, ctypes.byref(found)), handle)
    return found.value


def tcm(handle: ctypes.c_void_p) -> tuple[int, int]:
    """Address and size of the model's TCM."""
    address, size = ctypes.c_void_p(), _size()
    check(library().neutronGetTcm(handle, ctypes.byref(address), ctypes.byref(size)), handle)
    return address.value or 0, size.value


def state(handle: ctypes.c_void_p) -> tuple[int, int]:
    """Address and size of what the model keeps from run to run."""
    address, size = ctypes.c_void_p(), _size()
    check(library().neutronStateGet(handle, ctypes.byref(address), ctypes.byref(size)), handle)
    return address.value or 0, size.value


@cache
def target(name: str) -> int:
    """Address of the machine model of a target."""
    found = library().nm_target_find(name.encode())
    if found is None:
        raise OptionError(f"the native library has no machine model for target {name!r}")
    return int(found)


@cache
def kernel_name(kernel: int) -> str:
    """Name of a kernel id."""
    found = library().neutronKernelName(kernel)
    return found.decode() if found else f"kernel {kernel}"


def errors() -> list[tuple[int, str, str]]:
    """(error word, name, sentence) of every error, in the order of the driver's table."""
    found: list[tuple[int, str, str]] = []
    word = _i32()
    while library().neutronErrorAt(len(found), ctypes.byref(word)):
        name, sentence = library().neutronErrorName(word.value), library().neutronErrorString(word.value)
        found.append((word.value, name.decode(), sentence.decode()))
    return found
