"""Runs work over rows: blocks, scan, sample, regroup, gather, progress. Knows no method."""
