"""Post-training methods that change weights and biases to lose less accuracy in eight bits.

Before ranges are measured: `equalize`, `smooth`. After: `refine`, which rounds weights and corrects biases.
"""
