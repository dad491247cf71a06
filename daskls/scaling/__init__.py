"""What all cells share, chosen before space is cut: coding and scale of features, parameters.

Everywhere here, ``client`` is a distributed client, or None for the current scheduler.
"""
