"""Plans a fit from its sizes: sample, leaves, bundles, exchange, memory. No Dask, Zarr or data."""
