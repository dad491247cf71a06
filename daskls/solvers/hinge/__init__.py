"""The hinge loss: solvers of cells, of neighborhoods and of large samples."""
