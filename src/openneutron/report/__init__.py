"""Report: a versioned data model of a compile, written by the compiler and read by the renderers."""
