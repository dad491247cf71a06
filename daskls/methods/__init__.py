"""The methods of the papers: a package for each family, and what these share.

Everywhere here, ``client`` is a distributed client, or None for the current scheduler.
"""
