"""What several subcommands share: reading inputs, printing tables, loading models. The verbs are the files above."""
