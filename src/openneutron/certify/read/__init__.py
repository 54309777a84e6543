"""The checker's own readers: LiteRT, microcode and how it is stored, `.pte`. They share no code with the compiler."""
