"""`python -m daskls.cli` is `daskls`."""

from daskls.cli import main

if __name__ == "__main__":
    main()
