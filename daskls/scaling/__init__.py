"""What all cells share, chosen before space is cut: coding and scale of features, parameters."""
