"""Sources of rows: files and frames, read as streams of batches.

A table of named columns is read twice. The first pass learns what each column holds and how it is
encoded as numbers; a model keeps this encoding as JSON. The second pass writes the numbers as a
data set on Zarr. One batch is in memory at a time.
"""
