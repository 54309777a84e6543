"""Rewrites of LiteRT graphs, one file each: those that lowering runs are listed in `run_passes`, others are called by name."""
