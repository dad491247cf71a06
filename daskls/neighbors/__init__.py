"""Exact nearest neighbors over leaves that are read one at a time."""
