"""The checker's own readers of LiteRT files, microcode, stored constants and `.pte`. They share no code with the compiler."""
