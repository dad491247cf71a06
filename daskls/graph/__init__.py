"""Builds every graph: the task functions, and one graph builder a stage."""
