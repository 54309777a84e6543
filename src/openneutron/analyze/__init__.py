"""Questions about a compiled program: is it exact, how accurate is it, where do its cycles go, what would change them."""
