"""Clients of the model runners that NXP publishes for its boards, and of the open runtime's image that answers likewise.

A runner is a firmware that takes a model at run time, runs it and returns outputs and times. Three protocols are spoken:
`executorch_modelrunner` (framed, serial), and `tflm_modelrunner` over its serial console and over HTTP. Written from public
sources; all clients were tested against simulated boards, the framed one also against a Cortex-M33 under QEMU.

Example:
    >>> from openneutron.modelrunner.connect import connect
    >>> with connect("/dev/ttyACM0") as runner:
    ...     runner.load_model(Path("model.pte").read_bytes())
    ...     result = runner.run([image.tobytes()])
"""
