"""Proving a compiled file against its source, with no code of the compiler and nothing but the standard library.

Example:
    >>> from openneutron.certify.prove import prove
    >>> prove(Path("out.tflite").read_bytes(), Path("model.tflite").read_bytes()).calls
"""
