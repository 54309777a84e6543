"""Compiles in several threads give the bytes of compiles one after the other, and leave the process as it was."""

from __future__ import annotations

import logging
import os
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

import openneutron
from openneutron.executorch.torch_lock import torch_lock
from tests import tiny
from tests.executorch.partition.passes.test_keep_layers_whole import Layer

THREADS = 8
CONVOLUTION = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 4))


def compiled(model: nn.Module, *shape: int, **options: object) -> bytes:
    x = (torch.linspace(-1, 1, torch.Size(shape).numel()).reshape(shape),)
    return openneutron.compile(model, x, calibration=[x], **options).data


def recurrent() -> nn.Module:
    """A model of the caller's own, with the same weights in every thread: torch's random numbers are the process's."""
    model = Layer(nn.GRU(6, 5, batch_first=True))
    with torch.no_grad():
        for weights in model.parameters():
            weights.copy_(torch.linspace(-0.5, 0.5, weights.numel()).reshape(weights.shape))
    return model


# One model that threads share, models of their own, several partitions, and files, which need no torch.
KINDS: dict[str, Callable[[], bytes]] = {
    "convolutions": lambda: compiled(CONVOLUTION, 1, 3, 8, 8),
    "recurrent": lambda: compiled(recurrent(), 1, 2, 6, target="mcxn94x"),
    "LiteRT": lambda: openneutron.compile(tiny.convnet(), target="imx95").data,
    "partitions": lambda: compiled(CONVOLUTION, 1, 3, 8, 8, operators_not_to_delegate=("aten.max_pool2d*",)),
}


def difference(data: bytes, wanted: bytes) -> str:
    """Where two programs first differ, "" for equal ones."""
    if data == wanted:
        return ""
    at = next((at for at, (a, b) in enumerate(zip(data, wanted, strict=False)) if a != b), min(len(data), len(wanted)))
    return f"byte {at}: {data[at : at + 16].hex()} of {len(data)}, {wanted[at : at + 16].hex()} of {len(wanted)}"


def test_eight_threads_give_the_bytes_of_one() -> None:
    CONVOLUTION.train()
    wanted = {kind: compile_one() for kind, compile_one in KINDS.items()}
    threads, filters, disabled = torch.get_num_threads(), list(warnings.filters), logging.root.manager.disable
    start = threading.Barrier(THREADS)

    def compile_together(kind: str) -> bytes:
        start.wait()
        return KINDS[kind]()

    kinds = [*KINDS] * (THREADS // len(KINDS))
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(compile_together, kinds))
    differing = [difference(data, wanted[kind]) for kind, data in zip(kinds, found, strict=True)]
    assert not any(differing), [*zip(kinds, differing, strict=True)]
    assert torch.get_num_threads() == threads and CONVOLUTION.training
    assert (list(warnings.filters), logging.root.manager.disable) == (filters, disabled)


def test_files_do_not_wait_for_the_lock() -> None:
    with torch_lock(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(KINDS["LiteRT"]).result(timeout=600)


def test_a_forked_process_has_a_lock_of_its_own() -> None:
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with torch_lock():
            held.set()
            done.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    child = os.fork()
    if not child:
        with torch_lock():
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    done.set()
    holder.join()
