"""What every network's process needs, imported once by the server the processes are forked from."""

from openneutron.terminal.quiet import quiet

with quiet():  # torchao warns of optional parts for other machines
    import openneutron.executorch.pipeline
    import openneutron.onnx.importer  # noqa: F401  imported for the processes
