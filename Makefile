PYTHON ?= python3
BIN := .venv/bin
PINS := pyproject.toml constraints.txt $(wildcard locks/*.txt) tools/install.sh
WORKERS ?= 2
.PHONY: help setup demo test test-light test-all check fix docs site bench mutants sbom licences dist image clean

help:  ## list the words this Makefile knows
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: .venv/ready  ## make .venv with everything that the tests need

.venv/ready: $(PINS)
	$(PYTHON) -m venv .venv
	tools/install.sh .venv full -e .
	touch $@

.venv-light/ready: $(PINS)
	$(PYTHON) -m venv .venv-light
	tools/install.sh .venv-light light -e .
	.venv-light/bin/python tools/size.py
	touch $@

demo: .venv-light/ready  ## build a bank from a simulated cohort, select, show a table
	.venv-light/bin/tabon demo --out demo-output

test: setup  ## run the tests
	$(BIN)/python -m pytest -q -n $(WORKERS)

test-light: .venv-light/ready  ## run the tests of text and method in .venv-light, with PYTHON=... of any version
	.venv-light/bin/python -m pip install --quiet -c constraints.txt pytest pytest-randomly hypothesis pandas polars
	.venv-light/bin/python -m pytest -q tests/text tests/method

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
	$(BIN)/python tools/cli_reference.py > docs/reference/cli.md

site: setup  ## build the documentation site into site/, offline; warnings are errors (a test does the same)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: setup  ## print the benchmark table (ratios, one run)
	$(BIN)/python benchmarks/run.py

mutants: setup  ## change the parts that must not be wrong, see whether a test fails (minutes)
	$(BIN)/python tools/mutants.py --jobs $(WORKERS)

sbom: setup  ## write tabon.cdx.json: every package with its version, licence and sha256 (CycloneDX)
	$(BIN)/python tools/sbom.py > tabon.cdx.json

licences: setup  ## regenerate docs/reference/licences.md
	$(BIN)/python tools/licences.py > docs/reference/licences.md

dist: setup  ## make dist/: sdist, wheel and the weights' wheel, checked in an empty environment (minutes)
	$(BIN)/python tools/release.py --python $(PYTHON)

image: setup  ## run the steps of Containerfile in an empty Debian root, up to /readyz (root, minutes)
	$(BIN)/python tools/container.py

clean:  ## remove what the other words made
	rm -rf .venv .venv-light dist demo-output site tabon.cdx.json .mypy_cache .ruff_cache .pytest_cache .hypothesis
