"""Fault injection: plants faults in every stage of the compiler and records which check finds them."""
