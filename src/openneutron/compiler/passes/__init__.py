"""Passes on L1, one per file: a function that edits a `KernelGraph` in place and returns how often it acted."""
