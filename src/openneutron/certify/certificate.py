"""Writes and reads certificates: digests of both files, and which computation each call was matched with.

A certificate saves the search for these matches and proves nothing by itself.
"""

from __future__ import annotations

import hashlib
import json
import re

from openneutron.certify.prove import Hints, Proof
from openneutron.certify.refused import Refused

FORMAT = "openneutron certificate"
VERSION = 2
_MOST = 1 << 20  # calls in one certificate


def write(proof: Proof, compiled: bytes, source: bytes) -> str:
    """Return the certificate of a proof as text.

    Example:
        >>> Path("model.json").write_text(write(prove(compiled, source), compiled, source))
    """
    document = {
        "format": FORMAT,
        "version": VERSION,
        "compiled": hashlib.sha256(compiled).hexdigest(),
        "source": hashlib.sha256(source).hexdigest(),
        "calls": [[where, at, number] for (where, at), number in proof.recognised.items()],
    }
    return json.dumps(document, ensure_ascii=False) + "\n"


def read(text: bytes, compiled: bytes, source: bytes) -> Hints:
    """Return the hints of a certificate for these two files; a `Refused` names the first wrong byte."""
    try:
        document = json.loads(text)
    except UnicodeDecodeError as error:
        raise Refused("the certificate is no text", error.start) from None
    except json.JSONDecodeError as error:
        raise Refused(f"the certificate is no JSON ({error.msg})", error.pos) from None
    except ValueError:  # Python reads numbers of a few thousand digits at most
        long = re.search(rb"\d{1000,}", text)
        raise Refused("the certificate has a number that is none of a file", long.start() if long else 0) from None
    except RecursionError:
        raise Refused("the certificate is nested too deeply", 0) from None
    if not isinstance(document, dict) or (document.get("format"), document.get("version")) != (FORMAT, VERSION):
        raise Refused(f"this is not version {VERSION} of an {FORMAT}", 0)
    for name, data in (("source", source), ("compiled", compiled)):
        if document.get(name) != hashlib.sha256(data).hexdigest():
            raise Refused(f"the certificate is for another {name} file", max(text.find(f'"{name}"'.encode()), 0))
    calls = document.get("calls")
    if not isinstance(calls, list) or len(calls) > _MOST:
        raise Refused("the certificate has no list of calls", max(text.find(b'"calls"'), 0))
    hints: Hints = {}
    for entry in calls:
        match entry:
            case [str(where), int(at), int(number)]:
                hints[where, at] = number
            case _:
                raise Refused(f"a call of the certificate is {json.dumps(entry)[:60]}", max(text.find(b'"calls"'), 0))
    return hints
