"""The methods of the papers: a package for each family, and what these share."""
