"""`openneutron.sweep`: compile many variants, keep every result, and say what each one costs."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from openneutron.errors import OptionError
from openneutron.sweeps import cluster, serial
from openneutron.sweeps.identity import code_version, identity_of, key_of
from openneutron.sweeps.plan import AXES, Plan, Variant, make_plan, shown
from openneutron.sweeps.results import Row, Sweep
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
    progress: Progress | None = None,
    **grid: Any,
) -> Sweep:
    """Compile every model with every combination of options; the rows are also in `folder`.

    `models` are sources as `openneutron compile` takes them, or mappings with `source` and, for factories, `arguments`
    (name → values). Each keyword of `grid` is an option of `openneutron.compile` with a list of values.

    Results stay in `folder`: what is there is not compiled again, unless `fresh`. `workers` processes are started, one for
    each core if it is None; 1 works in this process. `scheduler` is the address of a Dask cluster instead. A variant that
    fails or takes longer than `timeout` seconds is a row with its reason. `reports` writes each variant's HTML report.

    Example:
        >>> found = sweep(["cifarnet", "ds_cnn"], target=["imxrt700", "mcxn94x"], fit_bytes=[None, 65536])
        >>> found.table().sort_values("stock_ms")
    """
    if workers is not None and workers < 1:
        raise OptionError(f"workers is {workers}", hint="give 1 or more, or leave it out")
    if not timeout >= 0:
        raise OptionError(f"timeout is {timeout}", hint="give seconds, or 0 for no limit")
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
    for number, outcome in _run(tasks, workers, scheduler, timeout, reports):
        key = tasks[number].key
        if outcome.lasting:
            store.put(key, outcome.row, outcome.report)
        rows[key] = outcome.row
        stage(f"{len(rows)} of {total} variants")
    found = Sweep(
        tuple(_row(variant, key, plan, rows[key], store) for variant, key in zip(plan.variants, keys, strict=True)),
        store.folder, plan.axes, already,
    )  # fmt: skip
    found.save()
    return found


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
    """The name of the quantized program that variants share."""
    parts = [variant.model.label, variant.model.sizes, variant.model.calibration, variant.quantizing]
    return hashlib.sha256(json.dumps(parts, default=repr, sort_keys=True).encode()).hexdigest()[:16]


def _run(
    tasks: Sequence[Task], workers: int | None, scheduler: str, seconds: float, report: bool
) -> Iterator[tuple[int, Outcome]]:
    # No more processes than there is work: each one takes seconds to start.
    count = min(workers or os.cpu_count() or 1, len(tasks))
    if not tasks:
        return
    if not scheduler and count == 1:
        yield from serial.run(tasks, seconds=seconds, report=report)
        return
    with cluster.cluster(scheduler, count) as client:
        yield from cluster.run(client, tasks, seconds=seconds, report=report, travel=bool(scheduler))


def _row(variant: Variant, key: str, plan: Plan, found: Row, store: Store) -> Row:
    """Who it is, what was found, and how to get it again."""
    options = dict(variant.options)
    report = store.report(key)
    return {
        "model": variant.model.label,
        **{name: _plain(options.get(name, AXES[name].default)) for name in plan.axes},
        **dict.fromkeys(COLUMNS),
        **found,
        "report": str(Path(report.parent.name) / report.name) if report.is_file() else "",
        "command": variant.command,
        "key": key,
    }


def _plain(value: Any) -> Any:
    return shown(value) if isinstance(value, tuple) else value
