"""Everything that concerns NXP's own tools: their converter behind our seam, their limits, their file format, their names."""
