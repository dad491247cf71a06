"""Runs the command line: `python -m daskls` is the command `daskls`."""

from daskls.cli import main

if __name__ == "__main__":
    main()
