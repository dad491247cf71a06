"""The scale of features: given, taken from their spread, or learned before space is cut."""
