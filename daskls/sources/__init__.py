"""Tables as they come: files and frames with named columns, as streams of Arrow batches.

A first pass learns what every column holds and how it becomes numbers, which a model keeps as JSON;
a second pass writes the numbers as a data set on Zarr. A batch is in memory at a time.
"""
