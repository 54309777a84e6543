"""The order of packed weights in the plain block, and which of its bytes are padding."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Order(NamedTuple):
    """The layout of plain weights: [groups][channels/M][taps][inputs/N][M][N], padded with zeros to whole M and N."""

    groups: int
    channels: int
    taps: int
    inputs: int
    units: int
    length: int

    @property
    def padded(self) -> tuple[int, int]:
        """Numbers of channels and inputs with padding."""
        return -(-self.channels // self.units) * self.units, -(-self.inputs // self.length) * self.length

    @property
    def plain_bytes(self) -> int:
        """Size with padding."""
        channels, inputs = self.padded
        return self.groups * channels * self.taps * inputs

    @property
    def weights(self) -> int:
        """Number of weights without padding."""
        return self.groups * self.channels * self.taps * self.inputs

    @property
    def blocks(self) -> int:
        """Number of blocks of M output channels in all groups."""
        return self.groups * -(-self.channels // self.units)

    @property
    def block_channels(self) -> npt.NDArray[np.int64]:
        """Number of output channels in each block; the last one of a group may have fewer than M."""
        blocks = -(-self.channels // self.units)
        sizes = np.full(blocks, self.units, np.int64)
        sizes[-1] = self.channels - (blocks - 1) * self.units
        return np.tile(sizes, self.groups)

    @property
    def block_weights(self) -> npt.NDArray[np.int64]:
        """Number of weights in each block of M output channels; each block is decoded on its own."""
        return self.block_channels * self.taps * self.inputs

    def _real(self) -> npt.NDArray[np.bool_]:
        """Return which plain bytes of one group are weights."""
        channels, inputs = self.padded
        real = np.zeros((channels, inputs), np.bool_)
        real[: self.channels, : self.inputs] = True
        split = real.reshape(channels // self.units, self.units, inputs // self.length, self.length).transpose(
            0, 2, 1, 3
        )
        blocks = split.reshape(channels // self.units, 1, -1)
        return np.broadcast_to(blocks, (blocks.shape[0], self.taps, blocks.shape[2])).reshape(-1)

    def without_padding(self, plain: npt.NDArray[np.int8]) -> npt.NDArray[np.int8] | None:
        """Return the weights in the order of the block without padding; None if the padding is not all zeros."""
        if plain.size == self.weights:
            return plain
        # Slices rather than a mask: only the last block of channels and the last of inputs have padding.
        channels, inputs = self.padded
        split = plain.reshape(self.groups, channels // self.units, self.taps, -1, self.units, self.length)
        real, kept = self.units + self.channels - channels, self.length + self.inputs - inputs
        if split[:, -1, :, :, real:].any() or split[:, :, :, -1, :, kept:].any():
            return None
        parts = (split[:, :-1], split[:, -1:, :, :, :real])
        return np.concatenate([_without_last(part, kept) for part in parts], axis=1).reshape(-1)

    def with_padding(self, weights: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
        """Undo `without_padding`."""
        if weights.size == self.plain_bytes:
            return weights
        plain = np.zeros((self.groups, self.plain_bytes // self.groups), np.int8)
        plain[:, self._real()] = weights.reshape(self.groups, -1)
        return plain.reshape(-1)


def _without_last(blocks: npt.NDArray[np.int8], kept: int) -> npt.NDArray[np.int8]:
    """Return blocks [groups][...][inputs/N][M][N] with only the first `kept` inputs of the last block."""
    groups, channels, taps, inputs, units, length = blocks.shape
    whole = blocks[:, :, :, :-1].reshape(groups, channels, taps, (inputs - 1) * units * length)
    last = blocks[:, :, :, -1, :, :kept].reshape(groups, channels, taps, units * kept)
    real = np.concatenate([whole, last], axis=-1) if kept < length else blocks
    return real.reshape(groups, real.size // groups)
