"""The hinge loss: its solver of cells, of neighborhoods and of large samples."""
