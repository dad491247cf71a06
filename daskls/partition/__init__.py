"""Partitions of rows into leaves and cells: trees of half-spaces, Voronoi regions, chunks."""
