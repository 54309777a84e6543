"""Who may ask, what is sent, and how a call ends."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest

from openneutron.errors import OptionError
from openneutron.studio import server
from openneutron.studio.server import Studio, static
from tests.studio.conftest import ask, call


def test_it_listens_on_the_loopback_interface_only(studio: Studio) -> None:
    assert studio.address.startswith(f"http://127.0.0.1:{studio.port}/") and len(studio.token) >= 32
    assert studio._http.server_address[0] == "127.0.0.1"


REFUSED = {
    "no token": ("/", {}),
    "another token": ("/x" * 16 + "/", {}),
    "the token alone": ("/{token}", {}),
    "another host": ("/{token}/", {"Host": "evil.example:{port}"}),
    "another port": ("/{token}/", {"Host": "127.0.0.1:1"}),
    "another origin": ("/{token}/", {"Origin": "https://evil.example"}),
    "a page without origin": ("/{token}/", {"Origin": "null"}),
    "another site": ("/{token}/", {"Sec_Fetch_Site": "cross-site"}),
    "the same site on another port": ("/{token}/", {"Sec_Fetch_Site": "same-site"}),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("body", [None, b'{"method": "hello", "params": {}}'], ids=["GET", "POST"])
def test_refusals(studio: Studio, case: str, body: bytes | None) -> None:
    path, headers = REFUSED[case]
    known = {"token": studio.token, "port": studio.port}
    filled = {name: text.format(**known) for name, text in headers.items()}
    status, data = ask(f"http://127.0.0.1:{studio.port}{path.format(**known)}", body, **filled)
    assert status == 403 and studio.token.encode() not in data and b"OpenNeutron studio" not in data


def test_the_page_and_its_parts(studio: Studio) -> None:
    status, data = ask(studio.address, Origin=f"http://127.0.0.1:{studio.port}", Sec_Fetch_Site="same-origin")
    assert status == 200 and b'src="main.js"' in data
    assert ask(f"{studio.address}main.js")[0] == 200
    for wrong in ("nothing.js", "../server.py", "%2e%2e/server.py", "file/x/y"):
        assert ask(f"{studio.address}{wrong}")[0] == 404, wrong
    assert static("server.py") is None


def test_headers_forbid_what_the_page_does_not_do(studio: Studio) -> None:
    with server_connection(studio) as connection:
        connection.sendall(f"GET /{studio.token}/ HTTP/1.1\r\nHost: localhost:{studio.port}\r\n\r\n".encode())
        head = connection.recv(65536).decode().split("\r\n\r\n")[0]
    assert "default-src 'none'" in head and "X-Frame-Options: DENY" in head and "Referrer-Policy: no-referrer" in head
    assert "nosniff" in head and "no-store" in head


def server_connection(studio: Studio) -> socket.socket:
    return socket.create_connection(("127.0.0.1", studio.port), timeout=600)


def test_errors_are_the_command_lines_sentences(studio: Studio, model: str) -> None:
    wrong = call(studio, "compile", model=model, options={"target": "imxrt701"})["error"]
    assert "unknown target 'imxrt701'" in wrong["text"] and "imxrt700" in wrong["text"] and not wrong["bug"]
    assert "load the page again" in call(studio, "no_such_call")["error"]["text"]
    assert "load the page again" in call(studio, "fits", other=1)["error"]["text"]
    _, data = ask(f"{studio.address}call", b"[1, 2")
    assert "no call" in json.loads(data)["error"]["text"]


def test_an_upload_is_bounded_before_it_is_read(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_UPLOAD_BYTES", 10)
    _, data = ask(f"{studio.address}upload?name=big.tflite", b"x" * 11)
    assert "11 bytes are over the page's" in json.loads(data)["error"]["text"]
    with server_connection(studio) as connection:
        head = f"POST /{studio.token}/upload?name=a.tflite HTTP/1.1\r\nHost: localhost:{studio.port}\r\n"
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        assert b" 411 " in connection.recv(1000)


def test_a_call_ends_when_the_page_goes_away(studio: Studio) -> None:
    """The work's process is killed: the folder of its sandbox is gone long before it could have ended."""
    zoo = call(studio, "zoo", name="cifarnet")["result"]["id"]  # torch alone takes seconds to import
    body = json.dumps({"method": "fits", "params": {"model": zoo}}).encode()
    with server_connection(studio) as connection:
        head = f"POST /{studio.token}/call HTTP/1.1\r\nHost: localhost:{studio.port}\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        assert connection.recv(1)
        until = time.monotonic() + 200
        while studio.jobs.running == 0 and time.monotonic() < until:
            time.sleep(0.02)
        assert studio.jobs.running == 1
    until = time.monotonic() + 200
    while studio.jobs.running and time.monotonic() < until:
        time.sleep(0.02)
    assert studio.jobs.running == 0
    assert "result" in call(studio, "remove", model=zoo)


def test_a_port_in_use_is_a_sentence(studio: Studio) -> None:
    with pytest.raises(OptionError, match=rf"port {studio.port} cannot be used"):
        Studio(studio.port)


def test_nothing_outlives_the_studio() -> None:
    """Neither a connection that a browser keeps open nor work that nobody waits for has a thread afterwards."""
    before = set(threading.enumerate())
    with Studio() as made:
        serving = threading.Thread(target=made.serve)
        serving.start()
        zoo = call(made, "zoo", name="cifarnet")["result"]["id"]
        with server_connection(made) as idle, server_connection(made) as busy:
            idle.sendall(f"GET /{made.token}/ HTTP/1.1\r\nHost: localhost:{made.port}\r\n\r\n".encode())
            assert idle.recv(1)
            body = json.dumps({"method": "fits", "params": {"model": zoo}}).encode()
            head = f"POST /{made.token}/call HTTP/1.1\r\nHost: localhost:{made.port}\r\nContent-Length: {len(body)}\r\n\r\n"
            busy.sendall(head.encode() + body)
            assert busy.recv(1)
            made.stop()
            serving.join()
            assert len(set(threading.enumerate()) - before) >= 2
            made.__exit__()
            assert set(threading.enumerate()) <= before and made.jobs.running == 0
