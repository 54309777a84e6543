"""Where accuracy is lost, layer by layer, and what would help."""
