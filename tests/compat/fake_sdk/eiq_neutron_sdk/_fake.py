"""The behaviour behind both spellings."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from openneutron.litert import read_model, write_model
from tests.compat.nxp_file import converted

FIGURES = {"subsystem": False, "numUnits": 1, "numPipes": 8, "numMacs": 8, "hwVersion": 2}


class Options:
    def __init__(self) -> None:
        self.minNumOpsPerGraph = 2
        self.excludeGraphPasses = ""
        self.fetchConstantsToSRAM = False
        self.dumpAfterImport = False
        self.verbose = False
        if os.environ.get("FAKE_SDK_OPTIONS") != "old":
            self.dumpKernelSelectionCode = False
            self.useProfiling = False


class CompilationContext:
    def __init__(self) -> None:
        self.targetOpts = None
        self.compilationOpts = Options()


def getNeutronTarget(name: str) -> SimpleNamespace:
    if os.environ.get("FAKE_SDK_FIELDS") == "direct":
        return SimpleNamespace(name=name, **FIGURES)
    return SimpleNamespace(name=name, npu=SimpleNamespace(**FIGURES))


def getNeutronTargets() -> list[SimpleNamespace]:
    return [getNeutronTarget(name) for name in ("imxrt700", "imx943")]


def isNeutronTarget(name: str) -> bool:
    return name in ("imxrt700", "imx943")


def convert(model: list[int], context: CompilationContext) -> list[int]:
    options = context.compilationOpts
    print("options", json.dumps(vars(options)), flush=True)
    print("target", context.targetOpts.name, flush=True)
    assert isinstance(model, list)
    mode = os.environ.get("FAKE_SDK_MODE", "ok")
    if mode == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if mode == "exit":
        os._exit(3)
    if mode == "raise":
        raise RuntimeError("Tensor data type invalid!")
    if mode == "hang":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        Path(os.environ["FAKE_SDK_CHILD"]).write_text(str(child.pid))
        time.sleep(600)
    if mode == "nonsense":
        return list(b"this is no model")
    if mode == "not bytes":
        return None
    if getattr(options, "dumpKernelSelectionCode", False):
        Path("_kernel_selection.c").write_text(f"/* selection of process {os.getpid()} */\n")
    if options.dumpAfterImport:
        Path("after_import.txt").write_text("imported graph\n")
        Path("after_import.bin").write_bytes(b"\xff\xfe\x00")
    original = read_model(bytes(model))
    count = len(original.main.operators)
    left = [count - 1] if mode == "leftover" else list(range(count)) if mode == "nothing" else []
    result = converted(
        original, left=left, permuted=mode == "permuted", profiling=getattr(options, "useProfiling", False)
    )
    if mode == "nothing":
        result = original
    if mode == "renamed":
        result.main.tensors[result.main.outputs[0]].name = "something_else"
    if mode == "retyped":
        tensor = result.main.tensors[result.main.outputs[0]]
        tensor.shape = (*tensor.shape[:-1], tensor.shape[-1] * 2)
    print("Operator conversion ratio = 1.0", flush=True)
    return list(write_model(result))
