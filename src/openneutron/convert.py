"""Convert a LiteRT model with the chosen converter: `open` is our compiler, `nxp` is NXP's SDK.

Logs, kernel selection, report and dumps are return values; nothing here writes a file. The report also estimates what NXP's
converter would do with the same model (`report.stock`).

Example:
    >>> result = convert(Path("model.tflite").read_bytes(), Options(target="imxrt700"))
    >>> Path("out.tflite").write_bytes(result.model)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from openneutron.errors import OptionError
from openneutron.options import CONVERTERS, Options
from openneutron.result import Result


def convert(model: bytes, options: Options) -> Result:
    """Convert with the chosen converter; same input and options give the same bytes."""
    if options.converter != "open":
        return convert_alone(model, options)
    from openneutron.board.answer import with_board
    from openneutron.compiler.pipeline import compile_parsed, parse_for

    opened = parse_for(model, options)
    result = compile_parsed(opened, model, options)
    as_in_the_file = model if opened.control_flow.changed else opened  # NXP's converter unrolls no loops
    report = with_board(result.report, as_in_the_file, **_board_options(options))
    return replace(result, report=report)


def with_board_estimate(result: Result, model: bytes, options: Options) -> Result:
    """Add the estimate of NXP's converter to a result of `convert_alone`, which makes it a result of `convert`."""
    if options.converter != "open":
        return result
    from openneutron.board.answer import with_board

    return replace(result, report=with_board(result.report, model, **_board_options(options)))


def _board_options(options: Options) -> dict[str, Any]:
    """What the estimate of NXP's converter depends on, beside model and target."""
    found: dict[str, Any] = {"fetch_constants": options.fetch_constants_to_sram, "sdk": options.sdk}
    if options.board_points:
        from openneutron.board.learn import learn

        found["learned"] = learn(options.board_points)
    return found


def convert_alone(model: bytes, options: Options) -> Result:
    """Convert without the estimate of NXP's converter, which takes a third of the time of `convert`."""
    if options.converter == "open":
        from openneutron.compiler.pipeline import compile_model

        return compile_model(model, options)
    if options.converter == "nxp":
        from openneutron.nxp.seam import convert_with_sdk

        return convert_with_sdk(model, options)
    raise OptionError(f"unknown converter {options.converter!r}", hint=f"known converters: {', '.join(CONVERTERS)}")
