"""Imported once for all workers that compile networks from PyTorch and ONNX."""

import contextlib
import gc

import openneutron.sweeps.preload.litert  # as every worker
from openneutron.extras import pause_collector
from openneutron.terminal.quiet import quiet

# What cannot be imported stops the task that needs it, which says why.
with quiet(), pause_collector(), contextlib.suppress(Exception):
    from openneutron.executorch.upstream.load_exporter import load_exporter

    load_exporter()
    import openneutron.executorch.lower.ops
    import openneutron.executorch.shared_program  # noqa: F401

gc.freeze()
