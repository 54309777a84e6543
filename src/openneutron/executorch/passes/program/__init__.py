"""Rewrites of exported ATen programs before they become Edge programs."""
