"""HTTP for the studio's page, on the loopback interface only.

Every address begins with a token that only the user's browser is told. Requests under another host name, and those that come
from another site's page, are refused: a page on the internet can ask a browser for addresses of this machine.

Example:
    >>> with Studio() as studio:
    ...     print(studio.address)
    ...     studio.serve()
"""

from __future__ import annotations

import contextlib
import hmac
import json
import mimetypes
import secrets
import select
import socket
import sys
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any, cast
from urllib.parse import parse_qs, quote, unquote, urlsplit

from openneutron.errors import InternalError, OpenNeutronError, OptionError
from openneutron.sandbox.supervisor import Limits
from openneutron.studio.api import Abilities, Api, Done
from openneutron.studio.jobs import Cancelled, Jobs, every
from openneutron.studio.policy import policy
from openneutron.studio.session import MOST_UPLOAD_BYTES, Session, too_large
from openneutron.studio.work import Stage

HOST = "127.0.0.1"
_NAMES = (HOST, "localhost")
_MOST_CALL_BYTES = 64 << 20  # a call's JSON holds inputs of a run; a float image of 1024 × 1024 × 3 takes 17 MB in it
_SIGN_OF_LIFE = 5.0  # seconds; proxies and browsers give up on silence after a minute
_SITES = ("same-origin", "none")  # Sec-Fetch-Site of the page itself, and of an address typed by the user
# Scripts need their type under nosniff, and systems' tables differ.
_TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}


class Studio:
    """A server with its session; `address` is what the browser opens."""

    def __init__(self, port: int = 0, limits: Limits | None = None) -> None:
        self.token = secrets.token_urlsafe(24)
        self.session = Session()
        self.jobs = Jobs(limits or Limits())
        try:
            self._http = _Server((HOST, port), _Handler)
        except OSError as error:
            self.session.__exit__()
            hint = "choose another --port, or leave it out"
            raise OptionError(f"port {port} cannot be used ({error.strerror or error})", hint=hint) from None
        self._http.studio = self
        self.port = int(self._http.server_address[1])

    @property
    def address(self) -> str:
        """The page's address with its token."""
        return f"http://{HOST}:{self.port}/{self.token}/"

    def serve(self) -> None:
        """Answer requests until `stop` is called from another thread, or Ctrl-C."""
        self._http.serve_forever(poll_interval=0.2)

    def stop(self) -> None:
        """End `serve`."""
        self._http.shutdown()

    def __enter__(self) -> Studio:
        return self

    def __exit__(self, *_: object) -> None:
        """End what is still being answered, with its processes, and remove the session's files."""
        self._http.server_close()
        self.session.__exit__()


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # `server_close` waits for the threads
    studio: Studio

    def __init__(self, *given: Any) -> None:
        self._connections: set[socket.socket] = set()
        super().__init__(*given)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection in a thread of its own."""
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        self._connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """End all connections and wait for their threads: one that waits for a request reads its end, one that waits for a
        process cancels it.
        """
        for connection in list(self._connections):
            with contextlib.suppress(OSError):  # the browser was faster
                connection.shutdown(socket.SHUT_RDWR)
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of browsers that went away, and one line of anything else."""
        error = sys.exc_info()[1]
        if not isinstance(error, (ConnectionError, TimeoutError)):
            print(f"openneutron: unexpected {type(error).__name__}: {error}", file=sys.stderr)


class _Handler(BaseHTTPRequestHandler):
    server_version, sys_version = "openneutron", ""
    protocol_version = "HTTP/1.1"
    timeout = 120

    @property
    def studio(self) -> Studio:
        return cast(_Server, self.server).studio

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: addresses hold the token."""

    def do_GET(self) -> None:
        """Send the page's files and a variant's downloads."""
        place = self._allowed_path()
        if place is None:
            return
        if place.startswith("file/"):
            self._download(place)
            return
        name = place or "index.html"
        data = static(name)
        if data is None:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")
            return
        suffix = name[name.rfind(".") :]
        kind = _TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
        self._send(data, kind)

    def do_POST(self) -> None:
        """Take an upload, or answer a call with lines of JSON: progress, then the result or the error."""
        place = self._allowed_path()
        if place is None:
            return
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit():
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "the request has no length")
            return
        if place == "upload":
            self._stream(lambda stage: self._upload(int(length)))
        elif place == "call":
            if int(length) > _MOST_CALL_BYTES:
                self.close_connection = True
                self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the inputs are too large for the page")
                return
            body = self.rfile.read(int(length))
            self._stream(lambda stage: self._call(body, stage))
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")

    def _allowed_path(self) -> str | None:
        """Return the path behind the token, or refuse the request and return None."""
        port = self.studio.port
        hosts = {f"{name}:{port}" for name in _NAMES}
        token, slash, place = urlsplit(self.path).path.removeprefix("/").partition("/")
        origin = self.headers.get("Origin")
        foreign = origin is not None and origin not in {f"http://{host}" for host in hosts}
        if self.headers.get("Host", "") not in hosts:
            self._refuse(HTTPStatus.FORBIDDEN, "this server answers only under its own address")
        elif foreign or self.headers.get("Sec-Fetch-Site", "none") not in _SITES:
            self._refuse(HTTPStatus.FORBIDDEN, "pages of other sites may not ask this server")
        elif not hmac.compare_digest(token.encode(), self.studio.token.encode()) or not slash:
            self._refuse(HTTPStatus.FORBIDDEN, "the address lacks its token; open the one that was printed")
        else:
            return unquote(place)
        return None

    def _call(self, body: bytes, stage: Stage) -> Any:
        try:
            asked = json.loads(body)
            name, parameters = str(asked["method"]), dict(asked["params"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise OptionError("the page sent something that is no call", hint="load the page again") from None
        return self._api().call(name, parameters, stage)

    def _upload(self, length: int) -> Any:
        query = {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()}
        name = query.get("name", "")
        if length > MOST_UPLOAD_BYTES:
            self.close_connection = True  # the rest of the body is not read
            raise too_large(length, name)
        return self._api().upload(name, self.rfile.read(length), query.get("model", ""))

    def _download(self, place: str) -> None:
        _, variant, name = [*place.split("/", 2), "", ""][:3]
        try:
            saved, data = self._api().download(variant, name)
        except OpenNeutronError as error:
            self._refuse(HTTPStatus.NOT_FOUND, str(error))
            return
        disposition = f"attachment; filename*=UTF-8''{quote(saved)}"
        self._send(data, "application/octet-stream", {"Content-Disposition": disposition})

    def _api(self) -> Api:
        def perform(
            work: str, given: Mapping[str, Any], stage: Stage, *, reads: list[str], files: Mapping[str, bytes]
        ) -> Done:
            return self.studio.jobs.run(work, given, stage, reads=reads, files=files, cancelled=self._client_is_gone)

        return Api(self.studio.session, perform, abilities())

    def _client_is_gone(self) -> bool:
        """Whether the browser closed the connection: it sends nothing more, so what can be read is the end."""
        try:
            readable, _, _ = select.select([self.connection], [], [], 0)
            return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)
        except (OSError, ValueError):
            return True

    def _stream(self, answer: Any) -> None:
        """Send lines of JSON as they come; the connection ends with the last one."""
        self.close_connection = True
        self.send_response(HTTPStatus.OK)
        self._headers("application/x-ndjson", {"Connection": "close"})

        def put(row: dict[str, Any]) -> None:
            self.wfile.write(json.dumps(row).encode() + b"\n")
            self.wfile.flush()

        try:
            put({"result": answer(every(_SIGN_OF_LIFE, lambda text: put({"progress": text})))})
        except Cancelled:
            return
        except OpenNeutronError as error:
            bug = isinstance(error, InternalError)
            put({"error": {"text": str(error), "message": error.message, "hint": error.hint, "bug": bug}})
        except (ConnectionError, TimeoutError):
            return
        except Exception as error:
            text = f"unexpected {type(error).__name__}: {' '.join(str(error).split())}"
            put({"error": {"text": text, "message": text, "hint": "", "bug": True}})

    def _send(self, data: bytes, kind: str, more: Mapping[str, str] | None = None) -> None:
        self.send_response(HTTPStatus.OK)
        self._headers(kind, {"Content-Length": str(len(data)), **(more or {})})
        self.wfile.write(data)

    def _headers(self, kind: str, more: Mapping[str, str]) -> None:
        rows = {
            "Content-Type": f"{kind}; charset=utf-8" if kind.startswith("text/") else kind,
            "Cache-Control": "no-store",
            "Content-Security-Policy": policy(),
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Permissions-Policy": "camera=(self), microphone=(self)",
        }
        for name, value in {**rows, **more}.items():
            self.send_header(name, value)
        self.end_headers()

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        self.close_connection = True
        data = f"{text}\n".encode()
        self.send_response(status)
        self._headers("text/plain", {"Content-Length": str(len(data)), "Connection": "close"})
        self.wfile.write(data)


def abilities() -> Abilities:
    """Return what the installed packages allow."""
    from importlib.util import find_spec

    torch = find_spec("torch") is not None and find_spec("executorch") is not None
    note = "" if torch else "PyTorch models need pip install 'openneutron[executorch]'; .tflite files work."
    return Abilities("python", torch=torch, note=note)


def static(name: str) -> bytes | None:
    """Return a file of the page; None for any other name.

    Example:
        >>> static("../server.py") is None
        True
    """
    if name == "report.css":  # the page and the report share their look
        return (resources.files("openneutron.report.html") / "templates" / "page.css").read_bytes()
    folder = resources.files(__package__) / "static"
    known = {entry.name: entry for entry in folder.iterdir() if entry.is_file()}
    return known[name].read_bytes() if name in known else None
