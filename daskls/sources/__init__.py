"""Sources of rows: files and frames, read as streams of batches.

A table of named columns is read twice: to learn what each column holds, then to write its numbers
as a data set on Zarr.
"""
