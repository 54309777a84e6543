"""Client of `tflm_modelrunner` on its serial console: commands that end with CR, uploads of raw bytes, results as JSON.

The console has no checksums and no time-outs of its own. A lost byte of an upload leaves the board waiting; it gets filler
until the console answers, and a sentence says what happened. Errors that the board prints before stale results are found.

Example:
    >>> with ConsoleRunner(open_transport("/dev/ttyACM0")) as runner:
    ...     runner.load_model(tflite)
    ...     runner.run([image.tobytes()]).microseconds
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from openneutron.errors import BoardError, OptionError
from openneutron.modelrunner.answers import (
    BoardModel,
    BoardOutput,
    BoardRun,
    BoardTensor,
    Progress,
    no_progress,
    report_progress,
)
from openneutron.modelrunner.tflm_json import Described, describe, parse_run
from openneutron.modelrunner.transport import Transport

PROMPT = b"\r\n=> "
BANNER = b"TFLite Modelrunner"
TERMINATOR = b"%" * 7  # closes an upload
FLASH_BLOCK = 16_384  # programmed as a whole, while nothing may be sent
LINE_BYTES = 350  # of a command; the board drops the rest
_READY, _RECEIVED, _BLOCK_DONE, _RESULTS = b"Ready for", b"bytes received #########", b"==", b"Results:"
_LARGEST_ANSWER = 16 << 20  # outputs of a model in base64
_PIECE = 1_024
_FILLER = 4_096  # bytes sent to a board that waits for the end of an upload, in pieces
# What stands in text when something failed; stale results may follow all the same.
_ERRORS = re.compile(
    r"TENSOR ERROR: [^\r\n]*|tensor arena not allocated|model malloc failed|tensor_arena alloc failed\.?|Invoke failed"
    r"|Failed to [^\r\n]*|Didn't find op [^\r\n]*|Incompatible Neutron NPU [^\r\n]*|Internal Neutron NPU driver error [^\r\n]*"
    r"|scratchWeightsBuffer Overflow|[^\r\n]*schema version[^\r\n]*|AllocateTensors\(\) failed[^\r\n]*"
    r"|[^\r\n]*[Mm]icrocode version mismatch[^\r\n]*",
)
_HINTS = (
    ("no payload of open microcode", "this board has the open runtime, which takes what `openneutron compile` makes"),
    ("arena", "the model needs more tensor memory than this board has for it: choose a smaller one, or another board"),
    ("malloc", "the model is larger than the board's memory for it"),
    ("Failed to resize", "the model needs more tensor memory than this board has for it"),
    ("Failed to allocate", "the model needs more tensor memory than this board has for it"),
    ("Didn't find op", "the runner does not have this operator"),
    ("icrocode", "convert the model with the converter of the board's SDK release"),
    ("Neutron", "convert the model with the converter of the board's SDK release, for this chip"),
)


@dataclass(frozen=True)
class Patience:
    """How long the client waits, in seconds; the defaults are what NXP's own client allows."""

    prompt: float = 5.0
    ready: float = 10.0
    settle: float = 4.0  # between "Ready" and the first byte of an upload
    block: float = 130.0
    prepare: float = 300.0
    results: float = 10.0
    run: float = 30.0
    banner: float = 15.0
    silence: float = 0.5


class ConsoleRunner:
    """A connection to the serial console of `tflm_modelrunner`."""

    protocol = "tflm_modelrunner"

    def __init__(self, transport: Transport, patience: Patience | None = None) -> None:
        self._transport = transport
        self._patience = patience or Patience()
        self._buffer = bytearray()
        self._described: Described | None = None
        self.where = transport.name
        self._find_prompt()
        self._command("echo off", self._patience.prompt)

    def __enter__(self) -> ConsoleRunner:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the port back."""
        self._transport.close()

    def info(self) -> BoardModel:
        """Describe the loaded model, with the layer times of its last run."""
        text = self._command("model", self._patience.results)
        if "Model Not Uploaded" in text or _RESULTS.decode() not in text:
            self._described = None
            return BoardModel((), ())
        self._described = describe(_results(text), self.where)
        return self._described.model

    def load_model(self, data: bytes, progress: Progress = no_progress) -> None:
        """Upload a LiteRT model; the board runs it once on zeros before it answers."""
        self._described = None
        self._upload(f"model_loadb {len(data)}", data, "uploading the model", progress)
        progress("the board prepares the model")
        self._refuse_errors(self._until_prompt(self._patience.prepare, "preparing the model"))
        found = self.info()
        if found.empty:
            raise BoardError(
                "the board has no model after the upload", where=self.where,
                hint="bytes were lost or the model was not accepted; reset the board and try again",
            )  # fmt: skip
        if found.model_bytes not in (0, len(data)):
            raise BoardError(
                f"the board has {found.model_bytes:,} bytes of the model's {len(data):,}", where=self.where,
                hint="bytes were lost on the line; reset the board and try again",
            )  # fmt: skip

    def run(self, inputs: Sequence[bytes], *, times: int = 1, progress: Progress = no_progress) -> BoardRun:
        """Upload the inputs, run, and return all outputs; the time is the board's mean of the sums of its operators."""
        described = self._described or self._describe()
        model = described.model
        check_sizes(model.inputs, inputs, self.where)
        for at, (tensor, data) in enumerate(zip(model.inputs, inputs, strict=True)):
            name = tensor.name if _is_plain(tensor.name) else f"input_idx_{at}"
            self._upload(f"tensor_loadb {name}", data, f"input {at}", progress)
            self._refuse_errors(self._until_prompt(self._patience.results, "taking an input"))
        progress(f"running {times} times" if times > 1 else "running")
        outputs: list[BoardOutput] = []
        wanted = [_output_word(at, tensor, described.indexed) for at, tensor in enumerate(model.outputs)]
        line = " ".join([f"run run={times}", *wanted])
        if len(line) > LINE_BYTES:
            raise BoardError(
                f"the names of the outputs make a command of {len(line)} characters, and the board takes {LINE_BYTES}",
                where=self.where, hint="shorten the names of the model's outputs",
            )  # fmt: skip
        text = self._command(line, self._patience.run * times + self._answer_seconds(model))
        self._refuse_errors(text)
        outputs[:], microseconds = parse_run(_results(text), self.where, described.units_per_microsecond)
        if len(outputs) != len(model.outputs):
            raise BoardError(
                f"the board returned {len(outputs)} of {len(model.outputs)} outputs", where=self.where,
                hint="outputs with the same name cannot be told apart by this firmware",
            )  # fmt: skip
        return BoardRun(tuple(outputs), microseconds)

    def _describe(self) -> Described:
        self.info()
        if self._described is None:
            raise BoardError("no model is loaded", where=self.where, hint="give a model file")
        return self._described

    def _answer_seconds(self, model: BoardModel) -> float:
        sent = sum(tensor.nbytes for tensor in model.outputs) * 4 / 3
        return self._patience.results + 2 * sent / self._transport.bytes_per_second

    def _find_prompt(self) -> None:
        """Get a prompt: at once, or after ending an upload that somebody left unfinished."""
        self._discard()  # a prompt from before says nothing about now
        for filler in (b"", *([b"%" * 1_024] * (_FILLER // 1_024))):
            self._write(filler + b"\r")
            if self._wait((PROMPT,), self._patience.prompt, required=False) is not None:
                self._discard()
                return
        raise BoardError(
            "there is no console prompt", where=self.where,
            hint="reset the board; is tflm_modelrunner on it, built for its serial port, and is this the port? "
            "`--protocol executorch` is for executorch_modelrunner",
        )  # fmt: skip

    def _discard(self) -> None:
        """Drop what the board sends until it is silent: leftovers, and answers to filler."""
        end = time.monotonic() + self._patience.prompt
        while time.monotonic() < end and self._transport.read(1 << 16, self._patience.silence):
            pass
        self._buffer.clear()

    def _command(self, line: str, seconds: float) -> str:
        """Send a line and return everything before the next prompt."""
        self._buffer.clear()
        self._write(line.encode("utf-8") + b"\r")
        return self._until_prompt(seconds, f"answering {line.split()[0]!r}")

    def _until_prompt(self, seconds: float, doing: str) -> str:
        found = self._wait((PROMPT,), seconds, doing=doing)
        assert found is not None
        return found[1].decode("utf-8", "replace")

    def _upload(self, command: str, data: bytes, what: str, progress: Progress) -> None:
        """Announce, send and close an upload, block by block where the board programs flash."""
        self._buffer.clear()
        self._write(command.encode("utf-8") + b"\r")
        found = self._wait((b" MEM\r\n", b" Flash\r\n", PROMPT), self._patience.ready, doing=f"answering {command!r}")
        assert found is not None
        ending, text = found
        if ending == PROMPT:
            self._refuse_errors(text.decode("utf-8", "replace"))
            raise BoardError(
                f"the board did not take the command {command.split()[0]!r}", where=self.where,
                hint="its firmware is another one, or noise spoiled the command: try again",
            )  # fmt: skip
        if not self._transport.paced:
            time.sleep(self._patience.settle)
        in_flash = ending == b" Flash\r\n"
        begun = time.monotonic()
        step = FLASH_BLOCK if in_flash else _PIECE
        for piece in report_progress([data[at : at + step] for at in range(0, len(data), step)], what, progress):
            self._write(piece)
            if in_flash:
                self._wait((_BLOCK_DONE,), self._patience.block, doing="programming a block of flash")
        self._write(TERMINATOR)
        # A socket takes an upload at once, and a slow line behind it still has most of it to carry.
        on_the_way = max(len(data) / self._transport.bytes_per_second - (time.monotonic() - begun), 0.0)
        seconds = self._patience.ready + 2 * (on_the_way + step / self._transport.bytes_per_second)
        if self._wait((_RECEIVED,), seconds, required=False) is None:
            self._recover(what)

    def _recover(self, what: str) -> None:
        """End an upload whose bytes got lost by filler, and say so; the board's copy is worthless then."""
        for _ in range(_FILLER // 64):
            self._write(b"%" * 64)
            if self._wait((_RECEIVED,), self._patience.silence, required=False) is not None:
                self._write(b"\r")
                self._wait((PROMPT,), self._patience.prepare, required=False)
                self._discard()
                hint = (
                    "the console is free again: run the command once more, with a shorter or better cable if it repeats"
                )
                raise BoardError(f"{what}: bytes were lost on the line", where=self.where, hint=hint)
        raise BoardError(
            f"{what}: the board waits for more bytes than were lost", where=self.where, hint="reset the board"
        )

    def _wait(
        self, endings: tuple[bytes, ...], seconds: float, *, doing: str = "", required: bool = True
    ) -> tuple[bytes, bytes] | None:
        """Read up to the first of some endings; returns it and what came before. What follows stays for the next call."""
        end = time.monotonic() + seconds
        while True:
            places = [(self._buffer.find(one), one) for one in endings]
            found = min((place for place in places if place[0] >= 0), default=None)
            if found is not None:
                at, ending = found
                before = bytes(self._buffer[:at])
                del self._buffer[: at + len(ending)]
                self._refuse_restart(before)
                return ending, before
            left = end - time.monotonic()
            if left <= 0 or len(self._buffer) > _LARGEST_ANSWER:
                break
            self._buffer += self._transport.read(1 << 16, left)
        self._refuse_restart(bytes(self._buffer))
        if not required:
            return None
        if len(self._buffer) > _LARGEST_ANSWER:
            message = f"the board sent more than {_LARGEST_ANSWER:,} bytes without an end"
        else:
            message = f"the board did not finish {doing} within {seconds:,.0f} s"
        last = " ".join(bytes(self._buffer[-200:]).decode("utf-8", "replace").split())
        raise BoardError(f"{message}{f'; its last words: {last!r}' if last else ''}", where=self.where, hint="reset it")

    def _refuse_restart(self, text: bytes) -> None:
        if BANNER in text and self._described is not None:
            self._described = None
            raise BoardError(
                "the board restarted before it answered", where=self.where,
                hint="its model is gone: check power and watchdog, then run the command again",
            )  # fmt: skip

    def _refuse_errors(self, text: str) -> None:
        found = _ERRORS.search(text)
        if found is None:
            return
        words = " ".join(found[0].split())
        hint = next((hint for key, hint in _HINTS if key in words), "`openneutron board info` shows what is loaded")
        raise BoardError(f"the board reports: {words}", where=self.where, hint=hint)

    def _write(self, data: bytes) -> None:
        if data:
            self._transport.write(data, 5.0 + 2 * len(data) / self._transport.bytes_per_second)


def check_sizes(tensors: Sequence[BoardTensor], inputs: Sequence[bytes], where: str) -> None:
    """Raise an `OptionError` unless there is one input of the right size for each tensor."""
    if len(tensors) != len(inputs):
        raise OptionError(f"{len(inputs)} inputs given, the model on the board has {len(tensors)}", where=where)
    for tensor, data in zip(tensors, inputs, strict=True):
        if tensor.nbytes and len(data) != tensor.nbytes:
            raise OptionError(
                f"input {tensor.name!r} has {len(data):,} bytes", where=where,
                hint=f"the board wants {tensor.nbytes:,}: {tensor.dtype} {list(tensor.shape)}",
            )  # fmt: skip


def _is_plain(name: str) -> bool:
    return bool(re.fullmatch(r"[\w:/;.+\-]+", name, re.ASCII)) and len(name) < LINE_BYTES - 20


def _output_word(at: int, tensor: BoardTensor, indexed: bool) -> str:
    if indexed or not tensor.name:
        return f"output_idx={at}"
    name = tensor.name
    for character, code in ((":", "%3A"), ("/", "%2F"), (";", "%3B"), (" ", "%20")):
        name = name.replace(character, code)
    return f"output={name}"


def _results(text: str) -> str:
    return text.rpartition(_RESULTS.decode())[2]
