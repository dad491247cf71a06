"""Partitions of space into cells: trees of half-spaces, grown on rows and routed the same way."""
