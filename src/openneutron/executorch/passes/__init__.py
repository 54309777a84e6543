"""Rewrites of PyTorch graphs."""
