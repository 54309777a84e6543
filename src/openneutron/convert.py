"""The seam: a pure function from LiteRT bytes and options to a result; `open` is our compiler, `nxp` is NXP's SDK.

Logs, kernel selection, report and dumps are return values; nothing here writes a file.

Example:
    >>> result = convert(Path("model.tflite").read_bytes(), Options(target="imxrt700"))
    >>> Path("out.tflite").write_bytes(result.model)
"""

from __future__ import annotations

from openneutron.errors import OptionError
from openneutron.options import CONVERTERS, Options
from openneutron.result import Result


def convert(model: bytes, options: Options) -> Result:
    """Convert with the chosen converter; same input and options give the same bytes."""
    if options.converter == "open":
        from openneutron.compiler.pipeline import compile_model

        return compile_model(model, options)
    if options.converter == "nxp":
        from openneutron.nxp.seam import convert_with_sdk

        return convert_with_sdk(model, options)
    raise OptionError(f"unknown converter {options.converter!r}", hint=f"known converters: {', '.join(CONVERTERS)}")
