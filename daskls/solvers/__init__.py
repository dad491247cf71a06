"""Training and evaluating one cell: arrays in, a LocalModel out, and back."""
