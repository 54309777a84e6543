"""A studio on a port of its own, and calls of it as a page makes them."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from openneutron.studio.server import Studio
from tests import tiny

OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(address: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    request = urllib.request.Request(address, body, {name.replace("_", "-"): text for name, text in headers.items()})
    try:
        with OPENER.open(request, timeout=600) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def call(studio: Studio, method: str, **params: Any) -> dict[str, Any]:
    """The last line of a call's answer: {"result": …} or {"error": …}."""
    _, data = ask(f"{studio.address}call", json.dumps({"method": method, "params": params}).encode())
    found: dict[str, Any] = json.loads(data.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def studio() -> Iterator[Studio]:
    with Studio() as made:
        thread = threading.Thread(target=made.serve)
        thread.start()
        yield made
        made.stop()
        thread.join()


@pytest.fixture(scope="module")
def model(studio: Studio) -> str:
    """A small model that was uploaded."""
    status, data = ask(f"{studio.address}upload?name=convnet.tflite", tiny.convnet())
    assert status == 200
    return str(json.loads(data)["result"]["id"])
