"""Which nodes the NPU runs, and why not the others."""
