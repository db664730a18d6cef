# Everything here needs only make and Python >= 3.11. `make help` lists the targets.

PYTHON      ?=
VENV        ?= .venv
PIP_ARGS    ?=
DEMO_ARGS   ?=
PYTEST_ARGS ?=

BIN     := $(VENV)/bin
PIP     := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install -qq -c constraints.txt $(PIP_ARGS)
WANTED  := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test lint fuzz size clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-6s %s\n", $$1, $$2}' Makefile
	@echo '  PYTHON=…  the Python to use    PIP_ARGS=…  options for pip install    DEMO_ARGS=…, PYTEST_ARGS=…'

demo: $(VENV)/.with-torch  ## set up .venv, train a small network and print its table
	@$(BIN)/torchroof demo $(DEMO_ARGS)

test: lint  ## set up .venv, then ruff, mypy and pytest
	$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: $(VENV)/.with-tests  ## ruff and mypy
	$(BIN)/python -m ruff check .
	$(BIN)/python -m mypy

fuzz: $(VENV)/.with-tests  ## ten thousand mutated traces; writes benchmarks/analysis/fuzz.txt
	PYTHONPATH=.:tests:tests/fuzz $(BIN)/python tests/fuzz/running.py 10000 1 > benchmarks/analysis/fuzz.txt
	@head -n 2 benchmarks/analysis/fuzz.txt

size:  ## lines per room, and the functions and files that are too long
	@python=$$($(FIND_PYTHON)) && "$$python" scripts/size.py

clean:  ## remove .venv and what tools left behind
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist

# Prints the first Python that is new enough: the one given, else the usual names.
FIND_PYTHON = \
	for python in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11 python); do \
		if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
		then echo "$$python"; exit 0; fi; \
	done; \
	echo "torchroof needs Python 3.11 or newer, and $(or $(PYTHON),python3) is not; name one: make PYTHON=/path/to/python3.11" >&2; \
	exit 1

$(BIN)/python:
	@python=$$($(FIND_PYTHON)) && { "$$python" -m venv $(VENV) || { rm -rf $(VENV); \
		echo "$$python cannot make a virtual environment (on Debian and Ubuntu: apt install python3-venv)" >&2; exit 1; }; }

# The stamps make a second run quick; a change of what is wanted installs again.
$(VENV)/.with-torch: $(WANTED) | $(BIN)/python
	@echo "Installing torchroof with torch into $(VENV) (once; torch is large)"
	@$(INSTALL) -e '.[torch]'
	@touch $@

$(VENV)/.with-tests: $(WANTED) | $(BIN)/python
	@echo "Installing torchroof with torch and the test tools into $(VENV) (once; torch is large)"
	@$(INSTALL) -e '.[torch,test]'
	@touch $(VENV)/.with-torch $@
