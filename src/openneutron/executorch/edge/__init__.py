"""Conversion of an exported program to Edge without retracing it."""
