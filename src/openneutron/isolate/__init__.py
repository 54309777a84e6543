"""Processes that work on files of strangers: their limits, how they are started, and what is said when they die."""
