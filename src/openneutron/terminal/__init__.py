"""Terminal output: console, progress, warnings of libraries, sizes, and the filter for control characters."""
