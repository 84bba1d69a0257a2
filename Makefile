# Two commands on a fresh machine: `make demo` (core only, no torch) and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check

# One pytest worker a core, each with one thread: two busy OpenMP pools slow each other down.
WORKERS ?= $(shell nproc)
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS)

.PHONY: demo test test-all check docs reference bench clean test-services large-wheel

# .venv is created by venv; the stamps record what has been installed into it.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --quiet -c constraints.txt -e .
	touch $@

# The companion packages, which the extras contexts and build name.
PACKAGES := packages/condsim-contexts packages/condsim-annotation

$(VENV)/.dev: pyproject.toml constraints.txt $(PACKAGES:=/pyproject.toml) $(VENV)/.core
	$(PIP) install --quiet torch==2.13.0
	$(PIP) install --quiet -c constraints.txt $(PACKAGES:%=-e ./%) -e '.[train,sweep,contexts,llm,parquet,ray,bertscore,mteb,build,search,serve,docs,dev]'
	touch $@

demo: $(VENV)/.core
	$(BIN)/condsim score --file examples/pairs.csv --table

# Rules of Harper that find faults and not spellings; `harper config` describes all.
GRAMMAR := AnA,LongSentences,OneOfTheSingular,PronounInflectionBe,RepeatedWords,SingleBe,ThatThan,ThenThan,ThereIsAgreement
GRAMMAR_PAGES := README.md CHANGELOG.md CONTRIBUTING.md

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/prose.py
	$(BIN)/harper lint --no-color --quiet --format compact -u /dev/null --only $(GRAMMAR) $(GRAMMAR_PAGES)

# Everything but what is marked slow.
test: $(VENV)/.dev
	$(PYTEST) -m "not slow"

test-all: $(VENV)/.dev
	$(PYTEST)

# The pages that the code tells, and the notebook of the tutorial.
reference: $(VENV)/.dev
	$(BIN)/python docs/reference.py
	$(BIN)/python docs/notebook.py

# The site, into site/; a broken link or an unknown Python name fails.
docs: $(VENV)/.dev
	$(BIN)/zensical build --strict --clean

SERVICES := .venv-services
$(SERVICES)/.installed: tests/services/requirements.txt
	$(PYTHON) -m venv $(SERVICES)
	$(SERVICES)/bin/pip --disable-pip-version-check install --quiet -r $<
	touch $@

# The annotation stages on a Label Studio server of its own (1 GB the first time).
test-services: $(VENV)/.dev $(SERVICES)/.installed
	CONDSIM_LABEL_STUDIO=$(SERVICES)/bin/label-studio $(BIN)/python -m pytest tests/services

# The larger model as a wheel of its own, into dist/.
large-wheel: $(VENV)/.dev
	cd packages/condsim-large && ../../$(BIN)/hatchling build -t wheel -d ../../dist

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) build dist site .mypy_cache .pytest_cache .ruff_cache
