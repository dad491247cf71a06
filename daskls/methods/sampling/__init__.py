"""Sampling: one SVM on support rows of small subsamples and on rows near them."""
