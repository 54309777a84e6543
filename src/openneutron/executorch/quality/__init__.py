"""Reach an accuracy goal by choices of the quantizer: goals, trials, noise of each tensor, the search, its sentences."""
