"""Damage ONNX models and import them: the answer is a program or a sentence of ours, soon and in bounded memory.

    python tests/fuzz/fuzz_onnx.py --seconds 60 --seed 0

The models are ONNX's own operator tests, which between them have every operator, and small networks.
"""

from __future__ import annotations

import argparse
import logging
import random
import resource
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

FINDINGS = ROOT / "build" / "fuzz" / "findings"
LARGEST = 1 << 16  # bytes: in a larger model hardly any damage is to its structure
HANG_S = 20  # CPU seconds; typical is a twentieth of one
MORE = 2 << 30  # bytes beside what the libraries map


class Hang(BaseException):
    """Raised by the alarm; not an Exception, so that nobody catches it on the way."""


def _raise(signum: int, frame: FrameType | None) -> None:
    raise Hang(f"no answer in {HANG_S} CPU seconds")


def damaged(data: bytes, rng: random.Random) -> bytes:
    """A few bytes changed, taken out or doubled."""
    made = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(made))
        what = rng.randrange(4)
        if what == 0:
            made[at] = rng.randrange(256)
        elif what == 1:
            del made[at : at + rng.randint(1, 16)]
        elif what == 2:
            made[at:at] = made[at : at + rng.randint(1, 16)]
        else:
            made[at : at + 4] = rng.randbytes(4)
        if not made:
            return b""
    return bytes(made)


def attempt(data: bytes) -> str:
    """What became of an import: "imported" or "refused"; anything else is raised."""
    from openneutron.errors import InternalError, OpenNeutronError
    from openneutron.onnx import load

    try:
        load(data, name="fuzz.onnx")
    except InternalError:
        raise
    except OpenNeutronError as error:
        if isinstance(error.__cause__, MemoryError):
            raise error.__cause__ from error
        return "refused"
    return "imported"


def seeds() -> list[bytes]:
    """The models to damage."""
    from tests.onnx.models import convnet
    from tests.onnx.suite import cases

    models = [case.model.SerializeToString() for case in cases().values()]
    return [convnet(opset).SerializeToString() for opset in (9, 13, 21)] + [m for m in models if len(m) <= LARGEST]


def _limit_memory() -> None:
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MORE, mapped + MORE))


def fuzz(seconds: float, seed: int) -> dict[str, int]:
    """How many were imported, refused and found; each place that fails counts once and leaves its model."""
    warnings.simplefilter("ignore")
    logging.disable()  # torch's
    signal.signal(signal.SIGPROF, _raise)
    rng = random.Random(seed)
    models = seeds()
    attempt(models[0])  # what importing loads is no part of the first case
    _limit_memory()
    counts = {"imported": 0, "refused": 0, "findings": 0}
    seen: set[str] = set()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        data = damaged(rng.choice(models), rng)
        signal.setitimer(signal.ITIMER_PROF, HANG_S)
        try:
            counts[attempt(data)] += 1
        except (Exception, Hang) as error:
            signal.setitimer(signal.ITIMER_PROF, 0)
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{type(error).__name__} in {frame.name} ({Path(frame.filename).name}:{frame.lineno})"
            if place in seen:
                continue
            seen.add(place)
            FINDINGS.mkdir(parents=True, exist_ok=True)
            found = FINDINGS / f"onnx-{seed}-{len(seen)}.onnx"
            found.write_bytes(data)
            counts["findings"] += 1
            print(f"FINDING {place}: {error}; the model is {found}", flush=True)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts = fuzz(options.seconds, options.seed)
    said = ", ".join(f"{count} {name}" for name, count in counts.items())
    print(f"fuzz: fuzz_onnx: {said} in {options.seconds:g} s, {'FAILED' if counts['findings'] else 'ok'}")
    return int(counts["findings"] > 0)


if __name__ == "__main__":
    sys.exit(main())
