"""The checker's only exception."""

from __future__ import annotations

MICROCODE, WEIGHTS, KERNELS = range(3)  # the blocks of a NeutronGraph
_BLOCKS = ("microcode", "weights block", "kernels block")


class Refused(ValueError):
    """The file is not proved: the message names the first wrong place, `offset` is its byte where there is one.

    Readers of a block count from the block's beginning; `inside` converts that to a byte of the file.
    """

    def __init__(self, message: str, offset: int | None = None, block: int = MICROCODE) -> None:
        super().__init__(message if offset is None else f"byte {offset}: {message}")
        self.message, self.offset, self.block = message, offset, block

    def inside(self, starts: tuple[int, ...]) -> Refused:
        """Return this refusal with `offset` counted in the file, where the blocks begin at `starts`."""
        if self.offset is None:
            return self
        text = f"{self.message} (byte {self.offset} of its {_BLOCKS[self.block]})"
        return Refused(text, starts[self.block] + self.offset)

    def of(self, whose: str) -> Refused:
        """Return this refusal with the name of the part that it is about in front."""
        return Refused(f"{whose}: {self.message}", self.offset, self.block)
