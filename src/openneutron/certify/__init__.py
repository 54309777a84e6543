"""Proves a compiled file against its source with the standard library only, and with no code of the compiler.

Example:
    >>> from openneutron.certify.prove import prove
    >>> prove(Path("out.tflite").read_bytes(), Path("model.tflite").read_bytes()).calls
"""
