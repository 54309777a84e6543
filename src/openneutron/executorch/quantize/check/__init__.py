"""Checks that rewrites of the float graph keep what the model computes on the user's own data."""
