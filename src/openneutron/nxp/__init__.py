"""NXP's SDK behind our converter interface: its published limits, its process, and its results as our report."""
