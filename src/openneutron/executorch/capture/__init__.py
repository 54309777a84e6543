"""Capture of a PyTorch model: sources, export, samples, and checks before any work is done."""
