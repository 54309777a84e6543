"""Imported once for all workers that compile LiteRT files."""

import gc

import distributed.nanny  # noqa: F401  what a worker's process runs

import openneutron.compiler.pipeline  # the compiler's passes and kernels
import openneutron.sweeps.cluster  # noqa: F401  the tasks

# A worker's garbage collection leaves these alone, so their memory stays shared.
gc.freeze()
