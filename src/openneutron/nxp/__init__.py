"""NXP's SDK behind our seam: its published limits, the process it runs in, and its results as our report."""
