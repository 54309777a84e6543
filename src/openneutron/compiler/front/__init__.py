"""LiteRT operators become kernel nodes: limits, groups, integer parameters, fusing."""
