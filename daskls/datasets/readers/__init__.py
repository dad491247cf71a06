"""One reader a file format: each gives a `Table`, whose rows stream in blocks."""
