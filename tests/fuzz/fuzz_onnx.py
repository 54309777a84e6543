"""Damage ONNX models and import them: whatever comes, the answer is a program or a sentence of ours.

python tests/fuzz/fuzz_onnx.py --seconds 60 --seed 0
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


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
    except OpenNeutronError:
        return "refused"
    return "imported"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    from tests.onnx.models import convnet

    warnings.simplefilter("ignore")
    rng = random.Random(options.seed)
    seeds = [convnet(opset).SerializeToString() for opset in (9, 13, 21)]
    counts = {"imported": 0, "refused": 0}
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        data = damaged(rng.choice(seeds), rng)
        try:
            counts[attempt(data)] += 1
        except Exception as error:
            Path("build/fuzz").mkdir(parents=True, exist_ok=True)
            found = Path("build/fuzz/finding.onnx")
            found.write_bytes(data)
            print(f"fuzz: fuzz_onnx: FAILED: {type(error).__name__}: {error}; the model is {found}")
            return 1
    print(f"fuzz: fuzz_onnx: {counts['imported']} imported, {counts['refused']} refused in {options.seconds:g} s, ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
