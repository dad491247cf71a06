"""Runs the command line of the suite."""

from benchmarks.suite.runner import main

if __name__ == "__main__":
    main()
