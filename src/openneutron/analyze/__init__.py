"""Analyses of a compiled program: exactness, accuracy, where its cycles go, and what would change them."""
