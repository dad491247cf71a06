"""Answers at levels: quantiles and expectiles, several of them from one kernel matrix a cell."""
