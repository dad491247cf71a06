"""Campaigns that attack the library from outside: killed processes, full disks, damaged files.

Each draws its trials by a seed, writes one JSON line a trial, and a table of what came of them.
`PYTHONPATH=tests python -m chaos --help` lists them; the tests run a short form of each.
"""
