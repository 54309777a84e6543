"""Post-training methods: what is done to weights and biases so that eight bits hold more of a network.

Before ranges are measured: `equalize`, `smooth`. After: `refine`, which rounds weights and corrects biases.
"""
