"""From an exported program to Edge without retracing it."""
