"""Run tasks on a Dask cluster: processes of this machine, or a running scheduler given by its address.

Example:
    >>> with cluster("", workers=2) as client:
    ...     for at, outcome in run(client, tasks, seconds=600.0, report=True, travel=False):
    ...         print(at, outcome.row["status"])
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from openneutron.errors import OptionError
from openneutron.extras import extra
from openneutron.sweeps.forking import LITERT, fork_server, threads_for
from openneutron.sweeps.identity import environment
from openneutron.sweeps.serial import Task, content_of
from openneutron.sweeps.task import FAILED, LOST, Failure, Outcome, Work, failure_outcome, measure, prepare

# A scheduler in the same network answers in milliseconds; workers that a batch system starts take longer.
ANSWER_SECONDS, WORKERS_SECONDS = 10, 60
# A task whose worker dies runs once more elsewhere; the second death is the task's doing.
_ALLOWED_DEATHS = 1


@contextmanager
def cluster(
    address: str, workers: int, preload: str = LITERT, threads: Mapping[str, str] | None = None
) -> Iterator[Any]:
    """Connect to the scheduler at `address`, or start `workers` processes that end with the block.

    These processes have imported the module `preload` when they start, in the environment `threads`.
    """
    if address:
        with _settings({}), _client(address) as client:
            yield client
        return
    threads = threads_for(workers) if threads is None else threads
    with fork_server(preload, threads) as method:  # it imports while Dask is imported here
        own = {
            "distributed.worker.multiprocessing-method": method,
            "distributed.nanny.pre-spawn-environ": dict(threads),
            # A process that is forked later has the environment of the server's start.
            "distributed.nanny.environ": dict(os.environ),
        }
        with _settings(own), _local(workers) as client:
            yield client


@contextmanager
def _settings(more: Mapping[str, Any]) -> Iterator[None]:
    with extra("a sweep with several workers"):
        import dask
        import distributed.utils
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    # Dask would import pandas here to have it in the fork server as well, which is running already.
    vars(distributed.utils)["_forkserver_preload_set"] = True
    settings = {
        "distributed.scheduler.allowed-failures": _ALLOWED_DEATHS,
        "distributed.logging.distributed": "critical",
        # Nobody looks at Dask's own profile, and a sample of the deep stacks inside torch, a hundred times a second, costs.
        "distributed.worker.profile.enabled": False,
        # So is a clock that each process reads fifty times a second to learn that a task held it up.
        "distributed.admin.tick.interval": "1s",
        # A worker that has nothing left takes a task from another at once: they take less than Dask's second.
        "distributed.scheduler.work-stealing-interval": "100ms",
        **more,
    }
    with dask.config.set(settings), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a graph with a model's weights in it is large on purpose
        yield


@contextmanager
def _client(address: str) -> Iterator[Any]:
    from distributed import Client

    try:
        client = Client(address, timeout=ANSWER_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        hint = "start one with `dask scheduler`, or leave --scheduler out"
        raise OptionError("no Dask scheduler answers", where=address, hint=hint) from error
    with client:
        yield client


@contextmanager
def _local(workers: int) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    local = LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        silence_logs=logging.CRITICAL,
    )
    with local, Client(local, set_as_default=False) as client:
        yield client


def check_versions(client: Any) -> None:
    """Raise an `OptionError` that names the first worker whose packages differ from the client's."""
    try:
        client.wait_for_workers(1, timeout=WORKERS_SECONDS)
    except TimeoutError:
        hint = "start them with `dask worker ADDRESS`"
        raise OptionError("the scheduler has no workers", where=client.scheduler.address, hint=hint) from None
    try:
        theirs: dict[str, dict[str, str]] = client.run(environment)
    except Exception as error:
        raise OptionError(
            f"its workers cannot run this OpenNeutron: {type(error).__name__}: {error}",
            where=client.scheduler.address, hint="install the same version there: pip install 'openneutron[all]'",
        ) from error  # fmt: skip
    ours = environment()
    for worker, found in sorted(theirs.items()):
        different = [
            f"{name} {found.get(name)} there, {ours[name]} here" for name in ours if found.get(name) != ours[name]
        ]
        if different:
            hint = "results must not depend on the worker: install the same versions"
            raise OptionError("; ".join(different), where=worker, hint=hint)


def run(
    client: Any, tasks: Sequence[Task], *, seconds: float, report: bool, travel: bool
) -> Iterator[tuple[int, Outcome]]:
    """Yield each task's number and outcome as they arrive. With `travel`, each model file is sent to the workers once."""
    from distributed import as_completed

    check_versions(client)
    files: dict[Any, Any] = {}
    shared: dict[str, Any] = {}
    numbers: dict[str, int] = {}
    futures = []
    for number, task in enumerate(tasks):
        if task.group not in shared:
            content = b""
            if travel and task.work.model not in files:
                # A task rather than scattered data: when the worker that holds the bytes dies, they come again.
                data = content_of(task.work.model)
                files[task.work.model] = client.submit(bytes, data, key=f"file-{len(files)}-{task.group}")
            content = files.get(task.work.model, content)
            made = client.submit(_work, task.work.model, task.work.quantizing, content, key=f"work-{task.group}")
            shared[task.group] = client.submit(prepare, made, seconds, in_worker=True, key=f"prepare-{task.group}")
        future = client.submit(
            _measure, shared[task.group], task.options, seconds, environment()["openneutron"], report,
            key=f"measure-{task.key}",  # one word for all: Dask learns how long they take, and shares them out by it
        )  # fmt: skip
        numbers[future.key] = number
        futures.append(future)
    waiting = as_completed(futures, loop=client.loop)
    del futures, shared, files
    for future in waiting:
        yield numbers[future.key], _outcome(future)
        future.release()


def _work(model: Any, quantizing: dict[str, Any], content: bytes) -> Work:
    return Work(model, quantizing, content)


def _measure(shared: Any, options: dict[str, Any], seconds: float, version: str, report: bool) -> Outcome:
    """`measure`, unless this worker joined later with another version."""
    here = environment()["openneutron"]
    if here != version:
        return failure_outcome(Failure(FAILED, f"a worker has OpenNeutron {here}, the client {version}", lasting=False))
    return measure(shared, options, seconds, report=report, in_worker=True)


def _outcome(future: Any) -> Outcome:
    if future.status == "finished":
        found: Outcome = future.result()
        return found
    cause = future.exception() if future.status == "error" else None
    if cause is None or type(cause).__name__ == "KilledWorker":
        times = _ALLOWED_DEATHS + 1
        reason = f"its worker ended {times} times: out of memory, a crash, or far beyond the time limit"
        return failure_outcome(Failure(LOST, reason, lasting=False))
    return failure_outcome(Failure(FAILED, f"unexpected {type(cause).__name__}: {cause}", lasting=False))
