"""Choices for all cells before space is cut: coding and scale of features, parameters."""
