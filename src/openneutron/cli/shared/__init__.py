"""Code that several subcommands share: compiling, reports, budgets, diagnosis, completion, the sandbox."""
