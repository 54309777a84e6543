"""`openneutron board learn`: refit the latency model with measurements of your own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def board_learn(
    ledger: Annotated[Path, typer.Argument(help="Measurements, as `openneutron board profile --ledger` writes them.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Refit the latency model with your own points, and say what they change.

    `openneutron compile --board-points FILE` then uses them. Each error after learning is that of a point left out of the fit.

    Example: openneutron board learn points.toml
    """
    import json
    import math

    from openneutron.board.fit import public_prior
    from openneutron.board.interval import LEFT_OUT, spread
    from openneutron.board.learn import learn_from
    from openneutron.board.workload import NAMES
    from openneutron.terminal import console

    lesson = learn_from(ledger)
    widths = [math.exp(spread(errors)) for errors in (LEFT_OUT, lesson.learned.errors)]
    published, learned = (belief.constants.tolist() for belief in (public_prior(), lesson.learned.belief))
    rows = list(zip(NAMES, published, learned, strict=True))
    if as_json:
        shown = {
            "points": [
                {
                    "model": one.point.model, "chip": one.point.chip, "milliseconds": one.point.time,
                    "error_before": one.before, "error_after": one.after,
                }
                for one in lesson.points
            ],
            "constants": {name: {"published": old, "learned": new} for name, old, new in rows},
            "interval_factor": {"published": widths[0], "learned": widths[1]},
            "skipped": lesson.skipped,
        }  # fmt: skip
        console.put(json.dumps(shown, indent=2))
        return
    console.put("each point estimated without itself")
    for one in lesson.points:
        console.put(
            f"  {one.point.chip:9} {one.point.time:10,.3f} ms  before {one.before:+7.1%}  after {one.after:+7.1%}  "
            f"{one.point.model}"
        )
    before, after = ([abs(getattr(one, name)) for one in lesson.points] for name in ("before", "after"))
    for name, sizes in (("before", before), ("after", after)):
        console.put(f"  {name}: mean error {sum(sizes) / len(sizes):.1%}, largest {max(sizes):.1%}")
    console.put(f"interval: times or by {widths[0]:.3f} before, {widths[1]:.3f} after")
    console.put("constants in cycles, published and learned")
    for name, old, new in rows:
        console.put(f"  {name:14} {old:9.3f} {new:9.3f}")
    for text in lesson.skipped:
        console.put(f"note: {text}")
