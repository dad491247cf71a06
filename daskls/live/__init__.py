"""A fit as a person watches it: a record of its progress, and what shows it."""
