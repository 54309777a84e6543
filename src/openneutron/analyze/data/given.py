"""Data as people name it, with what is done to it on the way.

Example:
    >>> data = Data("val-{000..009}.tar", limit=500)
    >>> for shard in data.shards(Wanted((3, 32, 32))):
    ...     print(shard.name)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from openneutron.analyze.accuracy import Labelled, labelled
from openneutron.analyze.data.labelled import Wanted, read_data
from openneutron.analyze.data.shards import SIZE, Reading, Shard, cut, shards_of


@dataclass(frozen=True)
class Data:
    """What is given: a path, a pattern or an import path; None for what a model of the zoo brings."""

    given: str | None
    limit: int = 0
    mean: str = ""
    std: str = ""
    shard_size: int = SIZE

    def shards(self, wanted: Wanted, *, zoo: str = "") -> Iterable[Shard]:
        """The data for a model that takes `wanted`, in parts."""
        if self.given is None:
            return cut(self.read(wanted, zoo=zoo), zoo, self.shard_size)
        return shards_of(self.given, wanted, Reading(self.shard_size, self.limit, self.mean, self.std))

    def read(self, wanted: Wanted, *, zoo: str = "") -> Labelled:
        """The data for a model that takes `wanted`; a model of the zoo may bring its own."""
        if self.given is not None:
            return read_data(self.given, wanted, limit=self.limit, mean=self.mean, std=self.std)
        from openneutron.zoo import load

        images = load(zoo).test_images()
        return labelled(images.inputs.numpy(), images.labels, where=zoo, limit=self.limit)
