# `make demo` and `make test` each make the virtual environment once; nothing else is needed but Python and make.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
READY = $(VENV)/.ready

.PHONY: help demo test lint types nojit examples check clean

help:
	@echo "make demo      train on a million rows on this machine and draw the result"
	@echo "make test      run the tests"
	@echo "make check     everything that a change must pass: tests, ruff, mypy, kernels without jit, examples"
	@echo "make clean     remove the virtual environment and build outputs"

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[plots,parquet,tests]"
	touch $(READY)

demo: $(READY)
	$(BIN)/daskls demo

test: $(READY)
	$(BIN)/python -m pytest

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

# The compiled kernels once more as plain Python: what numba hides (an index out of bounds, an overflow) fails here.
nojit: $(READY)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest tests/kernels tests/solvers

examples: $(READY)
	for script in examples/*.py; do echo $$script; MPLBACKEND=agg $(BIN)/python -W error $$script || exit 1; done

check: test lint types nojit examples

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache
