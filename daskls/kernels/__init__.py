"""Compiled numerical kernels: arrays in, arrays out. No layer below but numpy and numba."""
