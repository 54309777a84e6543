"""Mutation fuzz of the whole compiler: every damaged model is compiled, or refused with a sentence, quickly.

    python tests/fuzz/fuzz.py --seconds 600 --seed 0 [--models folder]

A finding is an exception that is not one of ours, an `InternalError`, a mutant that takes too long or too much memory, or
a crash. Cases are numbered; the same seed and number give the same mutant: --case shows one again. The work is done in a
child process, so that a crash is a finding and not the end.
"""

from __future__ import annotations

import argparse
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from openneutron.convert import convert  # noqa: E402
from openneutron.errors import InternalError, OpenNeutronError  # noqa: E402
from openneutron.options import Options  # noqa: E402
from openneutron.run.runner import LiteRtRunner, random_inputs  # noqa: E402
from tests.fuzz.mutate import mutated  # noqa: E402
from tests.fuzz.seeds import seeds  # noqa: E402

LIMIT_S = 2.0  # CPU seconds per mutant; typical is a hundredth
HANG_S = 20  # CPU seconds after which a mutant is given up
MEMORY = 4 << 30  # bytes of address space: the libraries alone map more than one gigabyte
RUN_MACS = 2_000_000  # mutants that compiled are run as well up to this size
TARGETS = ("imxrt700", "mcxn94x", "imx95")


class Hang(BaseException):
    """Raised by the alarm; not an Exception, so that nobody catches it on the way."""


@dataclass
class Case:
    """One numbered mutant."""

    number: int
    name: str
    data: bytes
    options: Options


def case(seed: int, number: int, folder: str) -> Case:
    """The mutant of that number."""
    rng = np.random.default_rng((seed, number))
    models = seeds(folder)
    name = sorted(models)[int(rng.integers(len(models)))]
    data = mutated(models[name], rng)
    options = Options(
        target=TARGETS[int(rng.integers(3))],
        optimize="fast" if rng.random() < 0.3 else "default",
        fetch_constants_to_sram=bool(rng.random() < 0.2),
        fit_bytes=int(rng.integers(64, 20_000)) if rng.random() < 0.15 else None,
        source="mutant",
    )
    return Case(number, name, data, options)


def attempt(one: Case) -> tuple[str, str]:
    """("compiled" or "refused", "") or ("finding", what happened)."""
    began = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, HANG_S)
    try:
        result = convert(one.data, one.options)
        outcome = "compiled"
        taken = time.process_time() - began
        totals = result.report.totals
        if totals.neutron_graphs and totals.neutron_graphs == len(_graphs(result.model)) and totals.macs <= RUN_MACS:
            runner = LiteRtRunner(result.model, source="mutant")
            runner.run(random_inputs(runner.inputs, seed=one.number))
    except InternalError:
        return "finding", f"internal error\n{traceback.format_exc(limit=-6)}"
    except OpenNeutronError:
        outcome, taken = "refused", time.process_time() - began
    except Hang:
        return "finding", f"no answer in {HANG_S} CPU seconds\n{traceback.format_exc(limit=-6)}"
    except Exception as error:
        return "finding", f"{type(error).__name__} instead of a sentence\n{traceback.format_exc(limit=-6)}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if taken > LIMIT_S:
        return "finding", f"took {taken:.1f} CPU seconds"
    return outcome, ""


def _graphs(model: bytes) -> list[object]:
    """Operators of a model, when all of them are NeutronGraphs: then only our own runtime runs it."""
    from openneutron.litert.read import read_model
    from openneutron.microcode.graph_op import is_graph_op

    operators = read_model(model).main.operators
    return list(operators) if all(is_graph_op(op) for op in operators) else []


def _raise(signum: int, frame: FrameType | None) -> None:
    raise Hang


def child(seed: int, start: int, seconds: float, folder: str, progress: Path) -> None:
    """Run cases from `start` on until the time is over; findings go to stdout, the current number to a file."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGPROF, _raise)
    end = time.monotonic() + seconds
    counts = {"compiled": 0, "refused": 0, "finding": 0}
    number = start
    while time.monotonic() < end:
        progress.write_text(str(number))
        one = case(seed, number, folder)
        outcome, text = attempt(one)
        counts[outcome] += 1
        if text:
            print(f"FINDING seed {seed} case {number} ({one.name}, {one.options.target}): {text}", flush=True)
        number += 1
    print(f"COUNTS {number} {counts['compiled']} {counts['refused']} {counts['finding']}", flush=True)


def fuzz(seed: int, seconds: float, folder: str = "") -> int:
    """Run for that long; returns the number of findings.

    Example:
        >>> fuzz(seed=0, seconds=10)
        0
    """
    print(f"seed {seed}, {len(seeds(folder))} models, {seconds:g} s", flush=True)
    end = time.monotonic() + seconds
    start = compiled = refused = findings = 0
    with tempfile.TemporaryDirectory() as name:
        progress = Path(name) / "case"
        while (left := end - time.monotonic()) > 0:
            words = [sys.executable, __file__, "--child", str(progress), "--seed", str(seed), "--start", str(start)]
            words += ["--seconds", str(left), "--models", folder]
            done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
            for line in done.stdout.splitlines():
                if line.startswith("COUNTS"):
                    start, one, two, three = map(int, line.split()[1:])
                    compiled, refused, findings = compiled + one, refused + two, findings + three
                else:
                    print(line)
            if done.returncode:
                start = int(progress.read_text()) + 1 if progress.exists() else start + 1
                findings += 1
                print(f"FINDING seed {seed} case {start - 1}: the process ended with {done.returncode}", flush=True)
    print(f"{start} cases: {compiled} compiled, {refused} refused, {findings} findings")
    return findings


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code says whether anything was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", default="", help="a folder of .tflite files to mutate as well")
    parser.add_argument("--case", type=int, help="run one case and show its traceback")
    parser.add_argument("--start", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.case is not None:
        one = case(given.seed, given.case, given.models)
        print(f"case {one.number}: {one.name}, {len(one.data)} bytes, {one.options}")
        print(convert(one.data, one.options).report.totals)
        return 0
    if given.child:
        child(given.seed, given.start, given.seconds, given.models, Path(given.child))
        return 0
    return int(fuzz(given.seed, given.seconds, given.models) > 0)


if __name__ == "__main__":
    sys.exit(main())
