"""What several subcommands share beside their inputs: what `compile` does, budgets, short cuts, the sandbox."""
