"""A model as PyTorch hands it over: sources, export, samples, and what is refused before any work."""
