"""Evaluate shards of labelled data on a Dask cluster; each worker builds the models once and reads its own shards.

Example:
    >>> with cluster("tcp://host:8786", 0) as client:
    ...     found = collect(names, parts_on(client, partial(build_forms_quietly, "cifarnet", data), count=40))
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from openneutron.analyze.accuracy import Form
from openneutron.analyze.sharded import Part, Shard, make_picklable, score_shard
from openneutron.errors import OptionError
from openneutron.sweeps.cluster import check_versions

Make = Callable[[], tuple[Sequence[Form], Iterable[Shard]]]

# In a worker: the forms, the shards and what was asked before, under the name of the evaluation.
_made: dict[str, Any] = {}


def parts_on(client: Any, make: Make, count: int) -> Iterator[Part]:
    """Yield the results of `count` shards in order; every worker calls `make`, which must give the same there."""
    check_versions(client)
    name = uuid.uuid4().hex  # another evaluation may find other files at the same place
    futures = [client.submit(_part, make, name, number, key=f"shard-{name}-{number}") for number in range(count)]
    try:
        for at, future in enumerate(futures):
            try:
                yield future.result()
            except Exception as error:
                reason = " ".join(str(error).split()) or type(error).__name__
                raise OptionError(f"a worker could not score part {at + 1} of the data: {reason}") from error
    finally:
        client.cancel(futures)
        client.run(_forget)


def _part(make: Make, name: str, number: int) -> Part:
    if name not in _made:
        forms, shards = make()
        _made[name] = forms, list(shards), {}
    forms, shards, asked = _made[name]
    return make_picklable(score_shard(forms, asked, shards[number]))


def _forget() -> None:
    _made.clear()
