"""Cells: an SVM for every cell of a partition of space, or for every random chunk."""
