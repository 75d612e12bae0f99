# Two commands: `make demo` and `make test`. Both set up `.venv` first; `make setup` does that alone.
PYTHON ?= python3
BIN := .venv/bin
INPUT ?=
ROWS ?= 100000
# Tests and the demo start hundreds of Python processes: without compiled files each would compile our modules and its own, and NumPy's
# OpenBLAS has threads that spin for a tenth of a second at every start, though nobody multiplies matrices here.
unexport PYTHONDONTWRITEBYTECODE
export OPENBLAS_NUM_THREADS := 1

.PHONY: setup demo test all-tests quick-tests class-archive compiled-tests test-distribution test-spark-versions check lint docs dist clean

setup: .venv/ready

# The lock file pins every package with its hashes; the project itself is installed in place, which compiles the kernels.
.venv/ready: requirements.lock pyproject.toml hatch_build.py hatch_metadata.py $(wildcard src/native/*)
	@$(PYTHON) -c 'import sys; sys.exit("Fairlead needs Python 3.11 or newer; $(PYTHON) is %d.%d. Try: make PYTHON=python3.12 $(MAKECMDGOALS)" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	@echo "setting up .venv (once; PySpark alone is some 400 MB)"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: setup
	@$(BIN)/fairlead demo --rows $(ROWS) $(if $(INPUT),--input $(INPUT))

# Lint beside the tests, and beside what they need first: it takes one core for half a minute.
test: setup
	@$(MAKE) --no-print-directory -j 3 lint all-tests

# Files are handed out in the order of their folders: long ones with servers and Java first, so that what is left at the end is short.
# Those that need the same servers go to one process (tests/support/scheduling.py).
# Four at a time on two cores: much of the time of the long ones is waiting for servers, time-outs and quotas.
# Spark's Javas map their classes from a file, which is written once in an environment (tests/support/class_archive.py).
# A worker that is gone is not replaced, or the test that it hung in would be tried again, and hang again.
all-tests: setup class-archive compiled-tests
	$(BIN)/python -m pytest tests -n 4 --dist loadfile --no-loadscope-reorder --max-worker-restart=0

class-archive: setup
	@$(BIN)/python -m tests.support.class_archive

compiled-tests: setup
	@$(BIN)/python -m tests.support.compiled tests

# The wheel and the source archive, with every extra, in empty environments: some gigabytes for pip.
# A test that hangs is told of after half an hour: how long pip takes for PySpark is up to the network.
test-distribution: setup
	FAIRLEAD_DISTRIBUTION=all $(BIN)/python -m pytest -o faulthandler_timeout=1800 tests/distribution

# Spark 4.0, 4.1 and 4.2 in environments of their own in build/, and each version with a second Java; `SPARK="4.0 4.1"` chooses.
test-spark-versions: setup
	$(BIN)/python -m tests.spark.each_version $(SPARK)

# What every commit passes: format, lint, types, floors, tidy and unit tests. Lint beside the tests, as in `make test`.
check: setup
	@$(MAKE) --no-print-directory -j 2 lint quick-tests

# A file to one process, for its tests look at the same sources or stand on the same fixtures. Those that take longest are in the midst.
quick-tests: setup
	@$(BIN)/python -m tests.support.compiled tests/tidy tests/unit
	$(BIN)/python -m pytest tests/tidy tests/unit -n 2 --dist loadfile --no-loadscope-reorder

lint: setup
	$(BIN)/ruff format --check src tests docs examples
	$(BIN)/ruff check src tests docs examples
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# Writes the tables in docs/ that come from the code, then the site into build/site; a broken link or anchor fails.
docs: setup
	$(BIN)/python -B docs/generate.py
	@rm -rf docs/__pycache__  # else a part of the site
	$(BIN)/zensical build --clean --strict

# A wheel of this platform and the source archive.
dist: setup
	$(BIN)/python -m hatchling build -d dist

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find src tests -name __pycache__ -prune -exec rm -rf {} +
