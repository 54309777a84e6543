"""Data as named by the user, with the image preprocessing.

Example:
    >>> data = Data("val-{000..009}.tar", limit=500)
    >>> for shard in data.shards(Wanted((3, 32, 32))):
    ...     print(shard.name)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from openneutron.analyze.accuracy import Labelled, label_samples
from openneutron.analyze.data.labelled import Wanted, read_data
from openneutron.analyze.data.shards import SIZE, Reading, Shard, shards_of, split_shards


@dataclass(frozen=True)
class Data:
    """The given data: a path, a pattern or an import path; None for the test images of a zoo model."""

    given: str | None
    limit: int = 0
    mean: str = ""
    std: str = ""
    shard_size: int = SIZE

    def shards(self, wanted: Wanted, *, zoo: str = "") -> Iterable[Shard]:
        """Return the data for a model that takes `wanted`, in shards."""
        if self.given is None:
            return split_shards(self.read(wanted, zoo=zoo), zoo, self.shard_size)
        return shards_of(self.given, wanted, Reading(self.shard_size, self.limit, self.mean, self.std))

    def read(self, wanted: Wanted, *, zoo: str = "") -> Labelled:
        """Return the data for a model that takes `wanted`; a model of the zoo may supply its own."""
        if self.given is not None:
            return read_data(self.given, wanted, limit=self.limit, mean=self.mean, std=self.std)
        from openneutron.zoo import load

        images = load(zoo).test_images()
        return label_samples(images.inputs.numpy(), images.labels, where=zoo, limit=self.limit)
