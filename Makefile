# Everything runs from .venv, which is built on first use and rebuilt when the pins change.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
NODE_STAMP := tests/node/node_modules/.ready
PAGE_STAMP := examples/page/node_modules/.ready
WEB_STAMP := web/node_modules/.ready
CONSOLE := src/outlast/api/console/index.html
WEB_TYPES := web/src/api/schema.d.ts
SOURCES := $(wildcard src tests chaos bench docs fuzz examples deploy)

# One worker more than there are cores: many tests wait for other processes. Each has a PostgreSQL server of its own;
# who is done takes over from the others, for some modules take minutes.
PYTEST_ARGS ?= -n $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)') --dist worksteal

# Use the Node on PATH when there is one, instead of downloading another.
ifneq ($(shell command -v node),)
export PYRIGHT_PYTHON_GLOBAL_NODE := 1
endif
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: browser console check-console help demo demo-cluster play test check check-fast types-fast tests-fast fix docs bench chaos chaos-deploy fuzz mutants \
	clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(STAMP): requirements/dev.txt pyproject.toml
	@echo "Setting up $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv --clear $(VENV)
	@echo "Installing the pinned packages"
	@$(BIN)/python -m pip install --quiet --requirement requirements/dev.txt
	@echo "Installing outlast from this folder"
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(NODE_STAMP): tests/node/package.json tests/node/package-lock.json
	@echo "Installing the stock clients that the tests run"
	@cd tests/node && npm ci --silent
	@touch $@

$(PAGE_STAMP): examples/page/package.json examples/page/package-lock.json
	@echo "Installing what the example page is built with"
	@cd examples/page && npm ci --silent
	@touch $@

$(WEB_STAMP): web/package.json web/package-lock.json
	@echo "Installing what the console is built with"
	@cd web && npm ci --silent
	@touch $@

# The installed packages are there for their order only: their stamp is newer than a console that came with a download.
$(CONSOLE): $(filter-out $(WEB_TYPES),$(foreach kind,ts tsx css svg,$(foreach depth,* */* */*/* */*/*/*,$(wildcard web/src/$(depth).$(kind))))) web/index.html web/vite.config.ts \
		web/package-lock.json | $(WEB_STAMP)
	@echo "Building the console"
	@cd web && npm run build --silent -- --logLevel warn
	@touch $@

$(WEB_TYPES): $(foreach folder,api wire events,$(foreach depth,* */* */*/*,$(wildcard src/outlast/$(folder)/$(depth).py))) | $(STAMP) $(WEB_STAMP)
	@$(BIN)/python -m docs.openapi_document > web/openapi.json
	@cd web && npm run schema --silent && rm openapi.json

console: $(CONSOLE) ## build the web console into the package

check-console: $(WEB_STAMP) $(WEB_TYPES) ## format, types and tests of the web console
	@echo "Checking the console"
	@cd web && npm run check --silent

# Tests drive a real browser. It is installed for root only: nobody else is asked for a password in the middle.
browser:
	@if [ "$${OUTLAST_SKIP_BROWSER:-}" = 1 ] || command -v chromium chromium-browser google-chrome >/dev/null; then \
		:; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing chromium for the tests in a browser"; \
		apt-get update -qq; \
		DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends chromium >/dev/null; \
	else \
		echo "The tests in a browser need chromium. Install it (Debian: sudo apt-get install chromium)," >&2; \
		echo "or leave these tests out: OUTLAST_SKIP_BROWSER=1 make test" >&2; \
		exit 1; \
	fi

demo: $(STAMP) $(if $(shell command -v npm),$(CONSOLE)) ## start a server with a demo agent; needs no API key
	@$(BIN)/outlast demo

play: $(STAMP) ## watch an agent survive kill -9, in the terminal
	@$(BIN)/outlast demo --play

demo-cluster: $(STAMP) ## watch PostgreSQL, two servers and three workers being killed
	@$(BIN)/python -m chaos.demo

test: $(STAMP) $(NODE_STAMP) $(PAGE_STAMP) $(CONSOLE) browser ## run all tests
	@$(BIN)/python -m tests.run $(PYTEST_ARGS)

check: $(STAMP) $(NODE_STAMP) $(PAGE_STAMP) $(CONSOLE) browser ## format, lint, imports, types and tests: what a change must pass
	@echo "Checking the format"
	@$(BIN)/ruff format --check $(SOURCES)
	@echo "Checking the rules"
	@$(BIN)/ruff check $(SOURCES)
	@echo "Checking the imports"
	@$(BIN)/lint-imports --no-logo --no-cache
	@echo "Checking the types"
	@$(BIN)/pyright
	@$(MAKE) --no-print-directory check-console
	@echo "Running the tests"
	@$(BIN)/python -m tests.run $(PYTEST_ARGS)

# Left out of units, the manual and behaviour: PostgreSQL, processes that are killed, what measures time, and the many
# odd agents and values.
FAST := not (postgresql or crash or test_existing_agent or test_patterns \
	or test_foreign_exits or test_odd_values or test_agents)
FAST_TESTS := tests/unit tests/fundamentals tests/behaviour

check-fast: $(STAMP) ## part of check: types of src only; units, manual, behaviour only; no PostgreSQL, crashes, odd agents
	@echo "Checking the format"
	@$(BIN)/ruff format --check $(SOURCES)
	@echo "Checking the rules"
	@$(BIN)/ruff check $(SOURCES)
	@echo "Checking the imports"
	@$(BIN)/lint-imports --no-logo --no-cache
	@echo "Checking the types and running the tests, at the same time: the type checker keeps only one core busy"
	@$(MAKE) --no-print-directory --jobs=2 types-fast tests-fast

types-fast:
	@$(BIN)/pyright src

tests-fast:
	@$(BIN)/python -m tests.run $(PYTEST_ARGS) --numprocesses=logical --quiet -k "$(FAST)" $(FAST_TESTS)

fix: $(STAMP) ## repair the format and what ruff can repair
	@$(BIN)/ruff format $(SOURCES)
	@$(BIN)/ruff check --fix $(SOURCES)

docs: $(STAMP) ## write the reference pages from the code
	@$(BIN)/python -m docs.generate

bench: $(STAMP) ## measure the hot paths
	@$(BIN)/python -m bench

chaos: $(STAMP) ## kill real processes and look for lost or repeated work
	@$(BIN)/python -m chaos
	@$(BIN)/python -m chaos.cluster

chaos-deploy: $(STAMP) ## replace a version by the next one under load, and look for losses
	@$(BIN)/python -m chaos.deploy

fuzz: $(STAMP) ## send ten thousand generated requests, run two thousand turns of a hostile agent and of one conversation, and load a server
	@$(BIN)/python -m fuzz --cases 10000 --report fuzz/result.json
	@$(BIN)/python -m fuzz.hostile_agent --cases 2000 --report fuzz/hostile-agent.json
	@OUTLAST_CRON_CASES=10000 $(BIN)/python -m pytest -q -p no:xdist --timeout 7200 tests/properties/test_cron.py
	@$(BIN)/python -m fuzz.load --report fuzz/load.json
	@$(BIN)/python -m fuzz.long_conversation --report fuzz/long-conversation.json

mutants: $(STAMP) ## break the code on purpose; chaos and tests must notice
	@$(BIN)/python -m chaos.mutants

clean: ## remove what these targets made
	@rm -rf $(VENV) tests/node/node_modules examples/page/node_modules examples/page/dist web/node_modules src/outlast/api/console dist build .pytest_cache .ruff_cache .hypothesis
	@find src tests docs -name __pycache__ -type d -prune -exec rm -rf {} +
