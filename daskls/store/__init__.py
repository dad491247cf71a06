"""Everything that is on disk: data sets, exchanged rows and models. The only importer of zarr."""
