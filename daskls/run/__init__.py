"""What every method runs on: blocks of rows, scan, sample, regrouping, tasks, progress."""
