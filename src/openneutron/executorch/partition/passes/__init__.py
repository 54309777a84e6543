"""Rewrites of a program around its partitions."""
