"""Delegated nodes become a LiteRT graph; one file per operator in ops/."""
