"""Labelled data named by the user: files, folders, archives, generators; whole or in shards."""
