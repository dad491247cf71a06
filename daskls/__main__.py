"""`python -m daskls` is `daskls`."""

from daskls.cli import main

if __name__ == "__main__":
    main()
