# Two commands on a fresh machine: `make demo` (core only, no torch) and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check

# One pytest worker a core, each with one thread: two busy OpenMP pools slow each other down.
WORKERS ?= $(shell nproc)
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS)

# Where torch comes from: the builds for the CPU; for a GPU, `make TORCH_INDEX=...` (docs/install.md).
# Where this index cannot be reached, pip's own is used.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
TORCH := torch==2.13.0
EXTRAS := train,sweep,contexts,llm,parquet,ray,bertscore,mteb,build,search,serve,docs,dev

.PHONY: demo test test-all check types docs reference bench clean constraints test-services large-wheel

# .venv is created by venv; the stamps record what has been installed into it.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --quiet -c constraints.txt -e .
	touch $@

# The companion packages, which extras name.
PACKAGES := packages/condsim-contexts packages/condsim-integrations packages/condsim-llm packages/condsim-sweep packages/condsim-mteb packages/condsim-annotation

$(VENV)/.dev: pyproject.toml constraints.txt $(PACKAGES:=/pyproject.toml) $(VENV)/.core
	$(PIP) install --quiet --retries 0 --index-url $(TORCH_INDEX) $(TORCH) || $(PIP) install --quiet $(TORCH)
	$(PIP) install --quiet -c constraints.txt -e . $(PACKAGES:%=-e ./%) -e '.[$(EXTRAS)]'
	touch $@

# The linters alone, without torch: 0.4 GB instead of some gigabytes.
LINT := .lint
$(LINT)/.installed: pyproject.toml constraints.txt $(PACKAGES:=/pyproject.toml)
	$(PYTHON) -m venv $(LINT)
	$(LINT)/bin/pip --disable-pip-version-check install --quiet -c constraints.txt -e '.[lint]'
	$(LINT)/bin/pip --disable-pip-version-check install --quiet --no-deps $(PACKAGES:%=-e ./%)
	touch $@

demo: $(VENV)/.core
	$(BIN)/condsim score --file examples/pairs.csv --table

# Rules of Harper that find faults and not spellings; `harper config` describes all.
GRAMMAR := AnA,LongSentences,OneOfTheSingular,PronounInflectionBe,RepeatedWords,SingleBe,ThatThan,ThenThan,ThereIsAgreement
GRAMMAR_PAGES := README.md CHANGELOG.md CONTRIBUTING.md

# Without torch and the like, their types are Any; `make types` checks against them, too.
WITHOUT_LIBRARIES := --ignore-missing-imports --allow-subclassing-any --allow-untyped-decorators \
	--no-warn-return-any --no-warn-unused-ignores \
	--disable-error-code misc --disable-error-code valid-type --disable-error-code has-type

check: $(LINT)/.installed
	$(LINT)/bin/ruff check .
	$(LINT)/bin/ruff format --check .
	$(LINT)/bin/mypy --cache-dir .mypy_cache/lint $(WITHOUT_LIBRARIES)
	$(LINT)/bin/lint-imports
	$(LINT)/bin/python tools/prose.py
	$(LINT)/bin/harper lint --no-color --quiet --format compact -u /dev/null --only $(GRAMMAR) $(GRAMMAR_PAGES)

# mypy --strict with the types of all libraries.
types: $(VENV)/.dev
	$(BIN)/mypy

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

# The larger model and the larger judge, each as a wheel of its own, into dist/.
large-wheel: | $(BIN)/python
	$(PIP) wheel --quiet --no-deps --wheel-dir dist ./packages/condsim-large ./packages/condsim-judge

# The newest versions that fit together and are no older than before, in an environment that is then removed;
# half an hour, most of it pip's search. Test before you commit.
constraints:
	$(PYTHON) -m venv .constraints
	.constraints/bin/pip install --quiet --retries 0 --index-url $(TORCH_INDEX) torch || .constraints/bin/pip install --quiet torch
	sed 's/==/>=/' constraints.txt > .constraints/least.txt
	.constraints/bin/pip install --quiet -c .constraints/least.txt -e . $(PACKAGES:%=-e ./%) -e '.[$(EXTRAS)]'
	sed '/^#/!d' constraints.txt > .constraints/new.txt
	.constraints/bin/pip list --exclude-editable --format freeze | grep -Ev '^(pip|setuptools)==' | sed 's/+cpu$$//' | LC_ALL=C sort -f >> .constraints/new.txt
	mv .constraints/new.txt constraints.txt
	rm -r .constraints

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) $(LINT) build dist site .mypy_cache .pytest_cache .ruff_cache
