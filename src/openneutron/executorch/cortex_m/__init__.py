"""Cortex-M33 operators beside the NPU: which nodes they can run, and the passes that convert these nodes."""
