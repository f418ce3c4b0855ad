# Sweetspot's commands. `make help` lists them.
.DEFAULT_GOAL := help
.PHONY: screens compose-env compose-check help demo stop clean status test check bench bench-ingest fuzz torture lab
MAKEFLAGS += --no-print-directory
PYTHON := .venv/bin/python
LOCAL := $(PYTHON) -m webapp.local

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS="$$(printf '\t')" read -r name text; do printf 'make %-14s %s\n' "$$name" "$$text"; done

demo: ## set up, start everything here, measure this machine's storage, show where to look
	@.ci/setup
	@$(LOCAL) demo

stop: ## end exactly what `make demo` started; its data stay
	@if [ -x $(PYTHON) ]; then $(LOCAL) stop; else echo "Nothing runs: there is no .venv."; fi

clean: ## stop, then remove the demo's data (saying what)
	@if [ -x $(PYTHON) ]; then $(LOCAL) clean; else echo "Nothing to remove: there is no .venv."; fi

status: ## what of the demo runs, and where
	@if [ -x $(PYTHON) ]; then $(LOCAL) status; else echo "Nothing runs: there is no .venv."; fi

test: ## all tests, or those of ARGS="…" (pytest's arguments)
	@.ci/setup --tests
	@$(LOCAL) test -- "$(ARGS)"

check: ## ruff, mypy, import-linter, migrations, tsc, Biome
	@.ci/setup --tests
	@$(LOCAL) check

bench: ## the figures that are promised, measured here
	@.ci/setup --tests
	@$(PYTHON) -m webapp.local.bench $(ARGS)

bench-ingest: ## the figures of the way from a report to a commit (ARGS="posts bulk hosts memory")
	@.ci/setup --tests
	@$(PYTHON) -m webapp.local.ingest_bench $(ARGS)

fuzz: ## a million damaged messages for contract and server (ARGS="--inputs N --seed S")
	@.ci/setup --tests
	@$(PYTHON) -m webapp.local.fuzz $(ARGS)

torture: ## 200 faults over a whole Sweetspot of its own, and a look at what each left (ARGS="--faults N --seed S")
	@.ci/setup --tests
	@$(PYTHON) -m webapp.local.torture $(ARGS)

lab: ## a virtual storage server (MegaRAID, NVMe, SAS) built, booted and tested in (ARGS="tests pull sweep --keep")
	@.ci/setup --tests
	@$(PYTHON) -m webapp.local.lab $(ARGS)

compose-env: ## write .env with a secret for each part of docker-compose.yml
	@python3 webapp/deploy/compose.py env

compose-check: ## build docker-compose.yml, measure with its worker, restart every part, remove it all; status 3 without Docker
	@python3 webapp/deploy/compose.py check

screens: ## pictures of every page of the running demo, into docs/screens
	@.ci/setup --tests
	@$(LOCAL) screens
