"""Arithmetic without graphs: multipliers, tables, packing of weights, windows, strides, broadcasting."""
