"""Proving a compiled file against its source, with no code of the compiler."""
