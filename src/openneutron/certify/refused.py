"""The one way the checker says no."""

from __future__ import annotations

MICROCODE, WEIGHTS, KERNELS = range(3)  # the blocks of a NeutronGraph
_BLOCKS = ("microcode", "weights block", "kernels block")


class Refused(ValueError):
    """The file is not proved; the message names the first place that is wrong, `offset` its byte where there is one.

    Readers of a block count from the block's beginning; `inside` makes that a byte of the file.
    """

    def __init__(self, message: str, offset: int | None = None, block: int = MICROCODE) -> None:
        super().__init__(message if offset is None else f"byte {offset}: {message}")
        self.message, self.offset, self.block = message, offset, block

    def inside(self, starts: tuple[int, ...]) -> Refused:
        """The same refusal where the blocks begin at these bytes of the file."""
        if self.offset is None:
            return self
        text = f"{self.message} (byte {self.offset} of its {_BLOCKS[self.block]})"
        return Refused(text, starts[self.block] + self.offset)

    def of(self, whose: str) -> Refused:
        """The same refusal, saying of what."""
        return Refused(f"{whose}: {self.message}", self.offset, self.block)
