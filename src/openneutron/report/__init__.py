"""One versioned data model of a compile, written by the compiler; renderers only read it."""
