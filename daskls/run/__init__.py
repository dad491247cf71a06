"""The machinery of all methods: blocks of rows, scan, sample, regrouping, tasks, progress."""
