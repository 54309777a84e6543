"""`openneutron.sweep`: compile many variants, keep every result, and say what each one costs."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from openneutron.errors import OptionError
from openneutron.extras import need
from openneutron.sweeps import cluster, serial
from openneutron.sweeps.forking import preload_for, threads_for
from openneutron.sweeps.identity import code_version, identity_of, key_of
from openneutron.sweeps.plan import AXES, Plan, Variant, format_value, make_plan
from openneutron.sweeps.results import FOR_PARQUET, Row, Sweep
from openneutron.sweeps.serial import Task
from openneutron.sweeps.store import Store
from openneutron.sweeps.task import COLUMNS, Outcome, Work

TIMEOUT_SECONDS = 600.0
Progress = Callable[[str], None]


def sweep(
    models: Any,
    *,
    folder: str | os.PathLike[str] = "sweep",
    workers: int | None = None,
    scheduler: str = "",
    timeout: float = TIMEOUT_SECONDS,
    reports: bool = True,
    fresh: bool = False,
    parquet: bool = False,
    progress: Progress | None = None,
    **grid: Any,
) -> Sweep:
    """Compile every model with every combination of options; the rows are also in `folder`.

    `models` are sources as `openneutron compile` takes them, or mappings with `source`, for factories `arguments` (name →
    values), and `data` (as `openneutron evaluate` takes it, with `limit`, `mean`, `std`) to have accuracy measured. Each
    keyword of `grid` is an option of `openneutron.compile` with a list of values.

    Results stay in `folder`: what is there is not compiled again, unless `fresh`. `workers` processes are started, one for
    each core if it is None; 1 works in this process. `scheduler` is the address of a Dask cluster instead. A variant that
    fails or takes longer than `timeout` seconds is a row with its reason. `reports` writes each variant's HTML report,
    `parquet` the rows also as results.parquet.

    Example:
        >>> found = sweep(["cifarnet", "ds_cnn"], target=["imxrt700", "mcxn94x"], fit_bytes=[None, 65536])
        >>> found.table().sort_values("stock_ms")
    """
    if workers is not None and workers < 1:
        raise OptionError(f"workers is {workers}", hint="give 1 or more, or leave it out")
    if not timeout >= 0:
        raise OptionError(f"timeout is {timeout}", hint="give seconds, or 0 for no limit")
    if parquet:
        need("pyarrow", FOR_PARQUET)  # before anything takes time
    plan = make_plan(models, grid)
    store = Store(folder)
    stage: Progress = progress or (lambda text: None)
    stage("reading the models")
    keys = _keys(plan)
    rows: dict[str, Row] = {}
    for key in keys:
        known = None if fresh else store.get(key)
        if known is not None and not (reports and known["status"] == "ok" and not store.report(key).is_file()):
            rows[key] = known
    already = len(rows)
    tasks = list(_tasks(plan, keys, rows))
    total = len(keys)
    stage(f"{already} of {total} variants known")
    unwritten: list[str] = []
    for number, outcome in _run(tasks, workers, scheduler, timeout, reports):
        key = tasks[number].key
        rows[key] = outcome.row
        if outcome.lasting:
            try:
                store.put(key, outcome.row, outcome.report)
            except OptionError as error:  # a full disk: what is measured is still shown
                unwritten.append(str(error))
        stage(f"{len(rows)} of {total} variants")
    found = Sweep(
        tuple(_row(variant, key, plan, rows[key], store) for variant, key in zip(plan.variants, keys, strict=True)),
        store.folder, (*_arguments(plan), *plan.axes), already,
    )  # fmt: skip
    try:
        found.save(parquet=parquet)
    except OptionError as error:
        unwritten.append(str(error))
    return dataclasses.replace(found, problems=_summary(unwritten))


def _summary(unwritten: Sequence[str]) -> tuple[str, ...]:
    """Return the first message and the number of the others."""
    more = f"; {len(unwritten) - 1} more files could not be written" if len(unwritten) > 1 else ""
    return (f"{unwritten[0]}{more}",) if unwritten else ()


def _keys(plan: Plan) -> list[str]:
    version = code_version()
    identities = {model: identity_of(model) for model in {variant.model: None for variant in plan.variants}}
    return [key_of(variant, identities[variant.model], version) for variant in plan.variants]


def _tasks(plan: Plan, keys: Sequence[str], known: Mapping[str, Row]) -> Iterator[Task]:
    seen = set(known)
    for variant, key in zip(plan.variants, keys, strict=True):
        if key not in seen:
            seen.add(key)
            yield Task(key, _group(variant), Work(variant.model, variant.quantizing), dict(variant.options))


def _group(variant: Variant) -> str:
    """Return the key of the quantized program that variants share."""
    model = variant.model
    parts = [model.label, model.sizes, model.calibration, repr(model.data), variant.quantizing]
    return hashlib.sha256(json.dumps(parts, default=repr, sort_keys=True).encode()).hexdigest()[:16]


def _run(
    tasks: Sequence[Task], workers: int | None, scheduler: str, seconds: float, report: bool
) -> Iterator[tuple[int, Outcome]]:
    asked = workers or os.cpu_count() or 1
    count = min(asked, len(tasks))  # no more processes than there is work
    if not tasks:
        return
    if not scheduler and count == 1:
        yield from serial.run(tasks, seconds=seconds, report=report)
        return
    preload = preload_for(task.work.model.source for task in tasks)
    # Threads as `start_ahead` had them, which did not know yet how much work there is.
    with cluster.cluster(scheduler, count, preload, threads_for(asked)) as client:
        yield from cluster.run(client, tasks, seconds=seconds, report=report, travel=bool(scheduler))


def _row(variant: Variant, key: str, plan: Plan, found: Row, store: Store) -> Row:
    """Build a row: the variant, its figures, and the command that repeats it."""
    options, arguments = dict(variant.options), dict(variant.model.arguments)
    report = store.report(key)
    return {
        "model": variant.model.label,
        **{column: _plain(arguments.get(name)) for column, name in _arguments(plan).items()},
        **{name: _plain(options.get(name, AXES[name].default)) for name in plan.axes},
        **dict.fromkeys(COLUMNS),
        **found,
        "report": str(Path(report.parent.name) / report.name) if report.is_file() else "",
        "source": variant.model.source,
        "command": variant.command,
        "key": key,
    }


def _arguments(plan: Plan) -> dict[str, str]:
    """Map columns to the factories' arguments, whose names may equal those of options."""
    names = dict.fromkeys(name for variant in plan.variants for name, _ in variant.model.arguments)
    return {f"argument_{name}": name for name in names}


def _plain(value: Any) -> Any:
    return format_value(value) if isinstance(value, tuple) else value
