"""Rewrites of lowered Edge programs."""
