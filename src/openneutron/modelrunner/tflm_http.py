"""Client of `tflm_modelrunner` over HTTP: of a board on the network, or of NXP's bridge for boards on a serial port.

Example:
    >>> with HttpRunner("http://192.168.1.20:10818") as runner:
    ...     runner.load_model(tflite)
    ...     runner.run([image.tobytes()]).microseconds
"""

from __future__ import annotations

import http.client
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from openneutron.errors import BoardError, OptionError
from openneutron.modelrunner.answers import BoardModel, BoardRun, Progress, no_progress
from openneutron.modelrunner.tflm_json import Described, describe, parse_run
from openneutron.modelrunner.tflm_uart import check_sizes

PORT = 10_818  # of a board; NXP's bridge listens on 10919
_LARGEST_ANSWER = 64 << 20
_NAME_BYTES = 49  # of a part's name in POST; the board's buffer has 50 with the closing zero


@dataclass(frozen=True)
class Patience:
    """How long the client waits, in seconds."""

    answer: float = 10.0
    upload: float = 300.0  # with the first inference
    run: float = 30.0


class HttpRunner:
    """A runner at a URL; each request is a connection of its own, because the board closes it."""

    protocol = "tflm_modelrunner over HTTP"

    def __init__(self, url: str, patience: Patience | None = None) -> None:
        self.where = url
        self._patience = patience or Patience()
        self._host, self._port, self._base = _address(url)
        self._described: Described | None = None

    def __enter__(self) -> HttpRunner:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget what is known of the board; there is no connection to close."""
        self._described = None

    def info(self) -> BoardModel:
        """Describe the loaded model, with the layer times of its last run."""
        text = self._request("GET", "/model", self._patience.answer)
        if "Model Not Uploaded" in text:
            self._described = None
            return BoardModel((), ())
        self._described = describe(text, self.where)
        return self._described.model

    def load_model(self, data: bytes, progress: Progress = no_progress) -> None:
        """Upload a LiteRT model. The board says success whatever happened, so it is asked for the model afterwards."""
        self._described = None
        progress("uploading the model")
        # NXP's bridge counts the blocks of an upload; a board accepts the count and ignores it.
        for name, content in (("block_count", b"1"), ("block_content", data)):
            answer = self._request("PUT", "", self._patience.upload, parts=[(name, content)])
            if "success" not in answer:
                raise BoardError(f"the board answered the upload with {answer.strip()[:80]!r}", where=self.where)
        found = self.info()
        if found.empty or found.model_bytes not in (0, len(data)):
            raise BoardError(
                "the board took the upload but could not set the model up", where=self.where,
                hint="its console says why: mostly too little tensor memory, an unknown operator, or another converter version",
            )  # fmt: skip

    def run(self, inputs: Sequence[bytes], *, times: int = 1, progress: Progress = no_progress) -> BoardRun:
        """Send the inputs, run, and return all outputs; the time is the board's mean of the sums of its operators."""
        if self._described is None:
            self.info()
        described = self._described
        if described is None:
            raise BoardError("no model is loaded", where=self.where, hint="give a model file")
        model = described.model
        check_sizes(model.inputs, inputs, self.where)
        short = all(0 < len(tensor.name.encode()) <= _NAME_BYTES for tensor in model.inputs)
        names = [tensor.name if short else f"input_idx_{at}" for at, tensor in enumerate(model.inputs)]
        wanted = [
            f"output_idx={at}" if described.indexed or not tensor.name else f"output={quote(tensor.name, safe='')}"
            for at, tensor in enumerate(model.outputs)
        ]
        progress("running")
        query = "&".join([f"run={times}", *wanted])
        seconds = self._patience.answer + self._patience.run * times
        parts = list(zip(names, inputs, strict=True))
        outputs, microseconds = parse_run(
            self._request("POST", f"?{query}", seconds, parts=parts), self.where, described.units_per_microsecond
        )
        if len(outputs) != len(model.outputs):
            raise BoardError(f"the board returned {len(outputs)} of {len(model.outputs)} outputs", where=self.where)
        return BoardRun(outputs, microseconds)

    def _request(self, method: str, tail: str, seconds: float, parts: Sequence[tuple[str, bytes]] = ()) -> str:
        """Return the text of the answer; every wait and the size of the answer are bounded."""
        headers, body = _multipart(parts) if parts else ({}, b"")
        end = time.monotonic() + seconds
        connection = http.client.HTTPConnection(self._host, self._port, timeout=seconds)
        try:
            connection.request(method, self._base + tail, body=body or None, headers=headers)
            response = connection.getresponse()
            data = bytearray()
            while piece := response.read1(1 << 16):
                data += piece
                if len(data) > _LARGEST_ANSWER or time.monotonic() > end:
                    raise TimeoutError
        except TimeoutError:
            raise BoardError(
                f"the board did not finish its answer within {seconds:,.0f} s", where=self.where, hint="reset the board"
            ) from None
        except (http.client.HTTPException, OSError) as error:
            why = " ".join(str(getattr(error, "strerror", None) or error).split()) or type(error).__name__
            raise BoardError(
                f"the board gave no answer ({why})", where=self.where,
                hint="its console prints the address; it takes one connection at a time, and none for an unknown output",
            ) from None  # fmt: skip
        finally:
            connection.close()
        text = data.decode("utf-8", "replace")
        if response.status != http.client.OK:
            raise BoardError(f"the board answered with HTTP status {response.status}", where=self.where,
                             hint=f"a board's address ends with /v1 or with nothing, on port {PORT}")  # fmt: skip
        bare = re.match(r'\s*"error"\s*:\s*"([^"]*)"', text)  # errors come without the braces of JSON
        if bare:
            raise BoardError(f"the board reports: {bare[1]}", where=self.where, hint="its console says more")
        return text


def _multipart(parts: Sequence[tuple[str, bytes]]) -> tuple[dict[str, str], bytes]:
    boundary = secrets.token_hex(16)
    while any(boundary.encode() in data for _, data in parts):
        boundary = secrets.token_hex(16)
    body = bytearray()
    for name, data in parts:
        # The board takes the last `name=` of the line for the part's name, so the file name comes first.
        head = (
            f'Content-Disposition: form-data; filename="x"; name="{name}"\r\nContent-Type: application/octet-stream\r\n'
        )
        body += f"--{boundary}\r\n{head}\r\n".encode() + data + b"\r\n"
    body += f"--{boundary}--\r\n".encode()
    return {"Content-Type": f"multipart/form-data; boundary={boundary}"}, bytes(body)


def _address(url: str) -> tuple[str, int, str]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or PORT
    except ValueError:
        host, port = None, 0
    if parts.scheme != "http" or not host:
        raise OptionError("it is no address of a board", where=url, hint=f"write http://192.168.1.20:{PORT}")
    return host, port, parts.path.rstrip("/") or "/v1"
