"""The sandbox: what is asked of it comes back, what is not stays out of reach, and its death is a sentence."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path

import pytest

from openneutron.errors import ConverterError, FormatError, OptionError
from openneutron.sandbox.supervisor import Limits, limits_of, sandbox

HERE = "tests.sandbox.misbehaving"
ROOT = Path(__file__).parents[2]
SMALL = Limits(memory=1 << 30, seconds=60, file=1 << 20)


def test_results_come_back() -> None:
    with sandbox(f"{HERE}:behave", {"text": "hello"}, SMALL, reads=[ROOT, None]) as done:
        assert (done.value, done.out, done.err) == (5, "hello\n", "")
        assert done.names() == ["a/b/file"] and done.names("a") == ["b/file"] and done.names("none") == []
        assert done.read("a/b/file") == b"hello"
        with pytest.raises(FormatError, match="no such file"):
            done.read("other")
        folder = done.folder
    assert not folder.exists()


def test_nothing_else_is_reached() -> None:
    with tempfile.TemporaryDirectory(dir=Path.home()) as folder, socket.create_server(("127.0.0.1", 0)) as server:
        secret = Path(folder, "secret")
        secret.write_text("of the user's")
        given = {"secret": str(secret), "beside": str(Path(folder, "new")), "port": server.getsockname()[1]}
        with sandbox(f"{HERE}:grab", given, SMALL, reads=[ROOT]) as done:
            got = done.value
            assert got["memory"] == "MemoryError" and got["file"] == "OSError"
            if "Landlock for files" not in done.missing:
                assert {got[name] for name in ("read", "list", "write", "link")} == {"PermissionError"}
            if "a network namespace" not in done.missing:
                assert got["connect"] != "done"
            if got["link"] == "done":
                with pytest.raises(FormatError):
                    done.read("link")
        assert [path.name for path in Path(folder).iterdir()] == ["secret"]


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        ("refuse", FormatError, "x.tflite: it is wrong. Hint: mend it"),
        ("allocate", ConverterError, "1,073,741,824 bytes of memory are used up"),
        ("crash", ConverterError, r"the sandbox crashed \(SIGABRT\)"),
        ("spin", ConverterError, "stopped after 1 seconds of work"),
        ("answer_nonsense", ConverterError, "ended with status 0"),
        ("nothing_of_this_name", ConverterError, "ended with status 1: AttributeError"),
    ],
)
def test_failures(function: str, error: type[Exception], message: str) -> None:
    limits = Limits(SMALL.memory, 1 if function == "spin" else 60, SMALL.file)
    with pytest.raises(error, match=message), sandbox(f"{HERE}:{function}", {}, limits, reads=[ROOT]):
        pytest.fail("it did not end")


def test_only_plain_files_are_read() -> None:
    with pytest.raises((FormatError, ConverterError)), sandbox(f"{HERE}:leave_a_pipe", {}, SMALL, reads=[ROOT]) as done:
        done.read("pipe")


def test_limits_as_text() -> None:
    assert limits_of("") == Limits()
    assert limits_of("memory=4G,seconds=30,file=1M") == Limits(4 << 30, 30, 1 << 20)
    for text in ("disk=1", "memory", "memory=much"):
        with pytest.raises(OptionError):
            limits_of(text)
