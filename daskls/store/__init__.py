"""Everything on disk: data sets, exchanged rows and models. No other package imports Zarr."""
