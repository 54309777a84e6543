"""How a program is stored: constants without padding and coded without loss, instructions without their zeros.

Compiler and kernels know plain bytes alone; what is here stands between them and the file (docs/storage.md).
"""
