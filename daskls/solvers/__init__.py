"""Solvers of one cell or neighborhood: they train a LocalModel from arrays, and evaluate it."""
