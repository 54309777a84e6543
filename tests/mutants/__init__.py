"""Fault injection: faults planted in every stage of the compiler, and who finds them."""
