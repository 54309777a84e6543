"""Merge kernel selections:

`python -m openneutron.compat.merge_kernel_selection_code -input-files A.c … -output-file O.c`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from openneutron.errors import OpenNeutronError
from openneutron.microcode.selection import merge_files
from openneutron.terminal.escapes import printable


def main(arguments: Sequence[str] | None = None) -> int:
    """Merge the files named on the command line; returns the exit status.

    Example:
        >>> main(["-input-files", "a.c", "b.c", "-output-file", "merged.c"])
        0
    """
    parser = argparse.ArgumentParser(
        prog="merge_kernel_selection_code", description="Merge kernel selections of several models into one."
    )
    parser.add_argument("-input-files", "--input-files", nargs="+", required=True, metavar="FILE")
    parser.add_argument("-output-file", "--output-file", required=True, metavar="FILE")
    given = parser.parse_args(arguments)
    try:
        merge_files(given.input_files, given.output_file)
    except OpenNeutronError as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
