"""The methods of the papers: a wing each, and what wings share."""
