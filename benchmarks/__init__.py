"""Experiments on what daskls costs and how often it is wrong: `python -m benchmarks --list`.

A module of this folder is an experiment; `suite` is what they share.
"""
