"""A campaign that attacks fits and predictions on a cluster: killed processes, lost clusters.

Its trials are drawn by a seed; it writes one JSON line a trial, and a table of what came of them.
`PYTHONPATH=tests python -m chaos --help`; the tests run a short form. Damaged files by the hundred
are `DASKLS_DAMAGES=40 pytest tests/faults/test_damage.py`.
"""
