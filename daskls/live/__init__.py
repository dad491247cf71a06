"""The live view of a fit: a record of its progress, and the displays that show it."""
