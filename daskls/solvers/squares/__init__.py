"""Least squares: one linear system per cell, solved by Cholesky factorization."""
