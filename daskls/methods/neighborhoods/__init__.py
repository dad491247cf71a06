"""Neighborhoods: SVMs on the nearest neighbors of centers or queries."""
