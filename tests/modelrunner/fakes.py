"""Boards in this process: both protocols as state machines behind a transport, with a line that can be made noisy."""

from __future__ import annotations

import base64
import json
import re
import struct
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import numpy as np
import pytest

from openneutron.errors import BoardError
from openneutron.modelrunner import connect, executorch_uart, tflm_uart, transport
from openneutron.modelrunner.executorch_uart import FramedRunner
from openneutron.modelrunner.framing import Command, FrameReader, encode
from openneutron.modelrunner.tflm_uart import ConsoleRunner

# Waits of a board that answers at once.
QUICK = executorch_uart.Patience(silence=0.01, gap=0.02, quiet=0.5, answer=0.2, load=0.2, run=0.2, probe=0.1)
QUICK_CONSOLE = tflm_uart.Patience(0.2, 0.2, 0.0, 0.2, 0.2, 0.2, 0.2, 0.2, 0.01)


_READ_SECONDS = 1e-4  # of a read that finds bytes: who reads for ever runs out of time


class Clock:
    """Time that passes only while somebody reads or sleeps, so that a busy machine is not a slow board."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


CLOCK = Clock()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Let clients measure their waits by `CLOCK`, as a `Line` does."""
    use_clock(monkeypatch)
    return CLOCK


def use_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clients measure their waits by `CLOCK`, as a `Line` does."""
    for module in (connect, executorch_uart, tflm_uart, transport):
        monkeypatch.setattr(module, "time", CLOCK)


class Line:
    """A transport to a board object with `hear`, which takes bytes and returns bytes; `noise` may change either direction."""

    def __init__(
        self, board: Any, to_board: Callable[[bytes], bytes] = bytes, to_host: Callable[[bytes], bytes] = bytes
    ):
        self.name = "fake"
        self.bytes_per_second = 1e6
        self.paced = False
        self.board, self.to_board, self.to_host = board, to_board, to_host
        self.pending = bytearray(getattr(board, "greeting", b""))
        self.written = bytearray()
        self.closed = False

    def read(self, most: int, seconds: float) -> bytes:
        CLOCK.sleep(max(seconds, _READ_SECONDS) if not self.pending else _READ_SECONDS)
        data = bytes(self.pending[:most])
        del self.pending[:most]
        return data

    def write(self, data: bytes, seconds: float) -> None:
        if self.closed:
            raise BoardError("closed", where=self.name)
        self.written += data
        self.pending += self.to_host(self.board.hear(self.to_board(data)))

    def close(self) -> None:
        self.closed = True

    def opened(self) -> Line:
        self.closed = False
        return self


class FramedBoard:
    """`executorch_modelrunner` with one model: it adds 1 to every byte of its input."""

    greeting = b"\r\nExecuTorch Modelrunner Ready\r\n"

    def __init__(self, size: int = 8) -> None:
        self.size = size
        self.model: bytes | None = None
        self.input: bytes | None = None
        self.buffer = bytearray()
        self.requests: list[int] = []

    def hear(self, data: bytes) -> bytes:
        """Take bytes as the firmware does: no time-outs, and a frame with an impossible length is searched for others."""
        self.buffer += data
        out = b""
        while (at := self.buffer.find(b"\x55\xaa")) >= 0:
            del self.buffer[:at]
            if len(self.buffer) < 7:
                break
            size = int.from_bytes(self.buffer[3:7], "little")
            if size > 1_048_576:
                del self.buffer[:2]
                continue
            if len(self.buffer) < 9 + size:
                break
            reader = FrameReader()
            reader.feed(bytes(self.buffer[: 9 + size]))
            frame = reader.next_frame()
            del self.buffer[: 9 + size]
            out += self.answer(frame.command, frame.payload) if frame else encode(Command.ERROR, b"\x01")
        return out

    def answer(self, command: int, payload: bytes) -> bytes:
        self.requests.append(command)
        shape = struct.pack("<BBi", 1, 1, self.size)
        if command == Command.LOAD_MODEL:
            self.model = self.input = None
            if not payload.startswith(b"model"):
                return encode(Command.ERROR, b"\x10load_model")
            self.model = payload
            return encode(Command.OK)
        if command == Command.GET_INFO:
            end = shape + b"\x00" + struct.pack("<I", self.size)
            return encode(Command.INFO, b"\x01" + end + b"\x01" + end if self.model else b"")
        if command == Command.LOAD_INPUT:
            if self.model is None:
                return encode(Command.ERROR, b"\x08no model")
            if len(payload) != self.size:
                return encode(Command.ERROR, b"\x05load_input")
            self.input = payload
            return encode(Command.OK)
        if command == Command.RUN:
            if self.input is None:
                return encode(Command.ERROR, b"\x08no input")
            data, self.input = bytes((one + 1) & 255 for one in self.input), None
            return encode(Command.RESULT, struct.pack("<QB", 848, 1) + shape + struct.pack("<I", len(data)) + data)
        return encode(Command.ERROR, b"\x02unknown cmd")


def model_json(size: int, model_bytes: int, generation: str = "new") -> str:
    """What `model` prints: `new` in microseconds, `old` (SDK 24.12) in nanoseconds, `mixed` with layers in nanoseconds."""
    old = generation == "old"
    key = "datatype" if old else "data_type"
    total, layers = (75_000, [50_000, 25_000]) if old else (75, [50_000, 25_000] if generation == "mixed" else [50, 25])
    end: dict[str, Any] = {"name": "in", "scale": 0.5, "zero_points": -3, key: "INT8", "shape": [1, size]}
    made: dict[str, Any] = {
        "timing": total, "ktensor_arena_size": 4_096, "inputs": [end], "outputs": [{**end, "name": "a/b c"}],
        "layer_count": 2,
        "layers": [
            {"name": name, "type": kind, ("avg_timing" if old else "timing"): one}
            for name, kind, one in zip(("npu", "soft"), ("NeutronGraph", "SOFTMAX"), layers, strict=True)
        ],
    }  # fmt: skip
    if not old:
        made["model_size"] = model_bytes
        made["inputs"][0]["idx"] = made["outputs"][0]["idx"] = 0
    return json.dumps(made)[:-1] + ",\b}"


class ConsoleBoard:
    """`tflm_modelrunner` on a serial console; its model adds 1 to every byte."""

    greeting = b"\r\n TFLite Modelrunner \r\n\r\n=> "

    def __init__(self, size: int = 8, *, ram_bytes: int = 65_536, generation: str = "new") -> None:
        self.size, self.ram_bytes, self.generation = size, ram_bytes, generation
        self.model: bytes | None = None
        self.input = bytes(size)
        self.line = bytearray()
        self.upload: tuple[str, int, bool] | None = None
        self.received = bytearray()
        self.echo = True
        self.commands: list[str] = []
        self.failure = ""

    def hear(self, data: bytes) -> bytes:
        out = bytearray()
        for byte in data:
            if self.upload:
                out += self.take(byte)
            elif byte == 13:
                out += self.command(self.line.decode("utf-8", "replace"))
                self.line.clear()
            else:
                out += bytes([byte]) if self.echo else b""
                self.line.append(byte)
        return bytes(out)

    def take(self, byte: int) -> bytes:
        assert self.upload is not None
        kind, size, flash = self.upload
        self.received.append(byte)
        count = len(self.received)
        if count < size + 7:
            return b"block ==" if flash and count <= size and (count % 16_384 == 0 or count == size) else b""
        data, self.upload = bytes(self.received[:size]), None
        out = f"\r\n######### {size} bytes received #########\r\n".encode()
        if kind == "model":
            self.model = data
            if self.failure:
                out += self.failure.encode()
        else:
            self.input = data
        return out + tflm_uart.PROMPT

    def command(self, line: str) -> bytes:
        self.commands.append(line)
        word, _, rest = line.partition(" ")
        if word == "echo":
            self.echo = rest == "on"
        elif word == "model_loadb":
            self.received.clear()
            self.upload = ("model", int(rest), int(rest) > self.ram_bytes)
            return (
                b"\r\n######### Ready for TFLite model download" + (b" Flash" if self.upload[2] else b" MEM") + b"\r\n"
            )
        elif word == "tensor_loadb":
            if rest not in ("in", "input_idx_0"):
                return f"\r\nTENSOR ERROR: No such input tensor '{rest}'".encode() + tflm_uart.PROMPT
            self.received.clear()
            self.upload = ("tensor", self.size, False)
            return f"\r\n######### Ready for {rest} tensor download  MEM\r\n".encode()
        elif word in ("model", "run"):
            return (
                (self.failure.encode() if word == "run" else b"")
                + b"\r\n\r\nResults:"
                + self.result(line).encode()
                + tflm_uart.PROMPT
            )
        return tflm_uart.PROMPT

    def result(self, line: str) -> str:
        if self.model is None:
            return '{"error": "Model Not Uploaded"}'
        if line == "model":
            return model_json(self.size, len(self.model), self.generation)
        data = base64.b64encode(bytes((one + 1) & 255 for one in self.input)).decode()
        self.input = bytes(self.size)
        wanted = re.search(r"output=a%2Fb%20c|output_idx=0", line)
        key = "datatype"
        outputs = [{"name": "a/b c", key: "INT8", "shape": [1, self.size], "data": data}] if wanted else []
        return json.dumps({"outputs": outputs, "timing": 75_000 if self.generation == "old" else 75})


class LiteRtBoard(ConsoleBoard):
    """`tflm_modelrunner` that computes what LiteRT's reference kernels do; `source` is the model where NXP's is uploaded.

    `change` may damage an output's bytes.
    """

    def __init__(self, source: bytes, change: Callable[[bytes], bytes] = bytes) -> None:
        from openneutron.run.runner import LiteRtRunner

        self.runner, self.change = LiteRtRunner(source), change
        (one,) = self.runner.inputs
        super().__init__(one.nbytes)
        self.ends = one, self.runner.outputs[0]

    def command(self, line: str) -> bytes:
        return super().command(line.replace(self.ends[0].name, "in") if line.startswith("tensor_loadb") else line)

    def result(self, line: str) -> str:
        if self.model is None:
            return super().result(line)
        given, taken = self.ends
        names = {"INT8": "int8", "FLOAT32": "float32"}
        types = {value: name for name, value in names.items()}
        if line == "model":
            raw = json.loads(model_json(self.size, len(self.model)).replace(",\b", ""))
            for side, one in (("inputs", given), ("outputs", taken)):
                raw[side] = [{"name": one.name, "data_type": types[str(one.dtype)], "shape": list(one.shape), "idx": 0}]
            return json.dumps(raw)
        values = np.frombuffer(self.input, given.dtype.numpy).reshape(given.shape)
        data = self.change(next(iter(self.runner.run([values]).outputs.values())).tobytes())
        output = {"name": taken.name, "datatype": types[str(taken.dtype)], "shape": list(taken.shape)}
        return json.dumps({"outputs": [{**output, "data": base64.b64encode(data).decode()}], "timing": 75})


class PayloadBoard(FramedBoard):
    """The open runtime's image: it takes a payload and runs it in this machine's simulator."""

    def answer(self, command: int, payload: bytes) -> bytes:
        from openneutron.machine.simulator import DTYPES, Simulator
        from openneutron.microcode.decode import tensors_of
        from openneutron.microcode.payload import parse_payload

        if command == Command.LOAD_MODEL:
            self.model = payload
            return encode(Command.OK)
        if self.model is None or command == Command.LOAD_INPUT:
            self.input = payload
            return encode(Command.OK) if self.model else super().answer(command, payload)
        parsed = parse_payload(self.model, where="board")
        rows = tensors_of(parsed.microcode)
        heads = [
            struct.pack(f"<BB{len(row.shape)}i", 1, len(row.shape), *row.shape) for row in rows
        ]  # the element type is INT8
        if command == Command.GET_INFO:
            ends = [
                head + bytes(range(len(row.shape))) + struct.pack("<I", row.bytes)
                for head, row in zip(heads, rows, strict=True)
            ]
            return encode(Command.INFO, b"\x01" + ends[0] + b"\x01" + ends[1])
        (given, taken), assumed = rows, self.input
        assert assumed is not None and not given.is_output and taken.is_output
        with Simulator(parsed.microcode, parsed.weights, parsed.kernels) as simulator:
            (made,) = simulator.run([np.frombuffer(assumed, DTYPES[given.dtype]).reshape(given.shape)])
            data = made.tobytes()
        return encode(Command.RESULT, struct.pack("<QB", 848, 1) + heads[1] + struct.pack("<I", len(data)) + data)


class HttpBoard:
    """`tflm_modelrunner` over HTTP on a free port, until it is closed."""

    def __init__(self, size: int = 8, generation: str = "new") -> None:
        self.console = ConsoleBoard(size, generation=generation)
        self.failure = ""
        self.silent = False
        board = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *arguments: Any) -> None:
                pass

            def parts(self) -> dict[str, bytes]:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                boundary = self.headers.get("Content-Type", "").partition("boundary=")[2].encode()
                found = {}
                for part in body.split(b"--" + boundary)[1:-1]:
                    head, _, data = part.partition(b"\r\n\r\n")
                    found[re.findall(rb'[ ;]name="([^"]*)"', head)[-1].decode()] = data[:-2]
                return found

            def say(self, text: str) -> None:
                if board.silent:
                    self.close_connection = True
                    return
                self.send_response(200)
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write((board.failure or text).encode())

            def do_PUT(self) -> None:
                board.console.model = self.parts().get("block_content", board.console.model)
                self.say('{"reply": "success"}')

            def do_POST(self) -> None:
                board.console.input = next(iter(self.parts().values()))
                self.say(board.console.result("run " + self.path.partition("?")[2].replace("&", " ")))

            def do_GET(self) -> None:
                self.say(board.console.result("model"))

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def noisy(seed: int, rate: float) -> Callable[[bytes], bytes]:
    """A line that drops, doubles or flips bits of single bytes, each kind a third of `rate`."""
    generator = np.random.default_rng(seed)

    def change(data: bytes) -> bytes:
        out = bytearray()
        for byte, chance in zip(data, generator.random(len(data)), strict=True):
            if chance >= rate:
                out.append(byte)
            elif chance < rate / 3:
                out += bytes([byte, byte])
            elif chance < 2 * rate / 3:
                out.append(byte ^ 1 << int(generator.integers(8)))
        return bytes(out)

    return change


def plug_in(monkeypatch: pytest.MonkeyPatch, board: object) -> Line:
    """Make every serial port a line to this board, whose clients do not wait long."""
    use_clock(monkeypatch)
    line = Line(board)
    monkeypatch.setattr(connect, "open_transport", lambda port, baud: line.opened())
    monkeypatch.setattr(connect, "_SILENCE", 0.01)
    monkeypatch.setattr(connect, "FramedRunner", lambda transport: FramedRunner(transport, QUICK))
    monkeypatch.setattr(connect, "ConsoleRunner", lambda transport: ConsoleRunner(transport, QUICK_CONSOLE))
    return line
