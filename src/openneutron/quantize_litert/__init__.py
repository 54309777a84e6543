"""Quantize float LiteRT files: LiteRT's own quantizer in a process of its own, and what makes its result more accurate."""
