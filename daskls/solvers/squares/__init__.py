"""Least squares: one linear system a cell, solved by Cholesky's factors."""
