"""Language models: vocabularies, generation token by token, and perplexity."""
