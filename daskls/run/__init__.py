"""What every method runs on: blocks of rows, scan, sample, regrouping, tasks, clusters, progress.

Nothing here knows a method; all go through `daskls.run.contract`.
"""
