"""Labelled data that people name: files, folders, archives, generators; whole or in shards."""
