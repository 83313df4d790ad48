# Set-up and the everyday commands. `make train` and `make test` work on a fresh Linux machine with
# Python 3.10: they build .venv first. PYTHON=/path/to/python3.10 chooses the interpreter.

VENV := .venv
STAMP := $(VENV)/.setup-stamp
SITE := $(VENV)/lib/python3.10/site-packages

# pip-tools in a throw-away environment; this very text is the header of requirements-3.10.lock.
PIP_TOOLS := pip-tools==7.6.2
PIP_AUDIT := pip-audit==2.9.0
PIP_COMPILE := pip-compile --generate-hashes --no-emit-index-url --no-emit-find-links \
	--no-emit-trusted-host --extra dev --strip-extras --allow-unsafe \
	--output-file requirements-3.10.lock pyproject.toml

# The second environment: the mathematics alone, on a current Python and JAX. No TensorFlow, no
# Reverb, no Launchpad, and no install either: pytest finds the packages in the folder.
CORE_VENV := .venv-core
CORE_STAMP := $(CORE_VENV)/.setup-stamp
CORE_TESTS := tests/tabular tests/learner tests/actors tests/report
CORE_PIP_COMPILE := pip-compile --generate-hashes --no-emit-index-url --no-emit-find-links \
	--no-emit-trusted-host --no-annotate --strip-extras --allow-unsafe \
	--output-file requirements-core.lock requirements-core.in

# Sets $python to a Python 3.10 that really runs (a pyenv shim can be in PATH and still fail) and
# can make environments, or says in one line how to get one.
define FIND_PYTHON
works() { "$$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != (3, 10))' \
	>/dev/null 2>&1; }; \
candidates() { \
	echo "$(PYTHON)"; \
	echo python3.10; \
	for minor in $$(pyenv versions --bare 2>/dev/null | grep '^3\.10\.[0-9]*$$' | sort -Vr); do \
		echo "$$(pyenv prefix $$minor 2>/dev/null)/bin/python3.10"; \
	done; \
	ls -1 "$$HOME"/.pyenv/versions/3.10.*/bin/python3.10 2>/dev/null; \
	uv python find 3.10 2>/dev/null; \
	echo python3; }; \
python=$$(candidates | while read -r candidate; do \
	if works "$$candidate"; then echo "$$candidate"; break; fi; done); \
if [ -z "$$python" ]; then \
	echo "Vantage needs Python 3.10 (with venv), and none was found. Get it with one of: \
'apt install python3.10-venv libpython3.10' (on newer Ubuntu after \
'add-apt-repository ppa:deadsnakes/ppa'), \
'PYTHON_CONFIGURE_OPTS=--enable-shared pyenv install 3.10', 'uv python install 3.10'; \
or name one: make PYTHON=/path/to/python3.10" >&2; exit 1; \
fi; \
if [ -n "$(PYTHON)" ] && [ "$$python" != "$(PYTHON)" ]; then \
	echo "PYTHON=$(PYTHON) is not a working Python 3.10 with venv; using $$python" >&2; \
fi
endef

# The same for the second environment: $python becomes the oldest of Python 3.12 and newer that runs.
define FIND_CORE_PYTHON
works() { "$$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info[:2] < (3, 12))' \
	>/dev/null 2>&1; }; \
candidates() { \
	echo "$(PYTHON)"; \
	for minor in 12 13 14; do \
		echo python3.$$minor; \
		ls -1 "$$HOME"/.pyenv/versions/3.$$minor.*/bin/python3.$$minor 2>/dev/null; \
		uv python find 3.$$minor 2>/dev/null; \
	done; \
	echo python3; }; \
python=$$(candidates | while read -r candidate; do \
	if works "$$candidate"; then echo "$$candidate"; break; fi; done); \
if [ -z "$$python" ]; then \
	echo "The tests of the mathematics alone need Python 3.12 or newer (with venv), and none was \
found; name one: make test-core PYTHON=/path/to/python3.12" >&2; exit 1; \
fi; \
if [ -n "$(PYTHON)" ] && [ "$$python" != "$(PYTHON)" ]; then \
	echo "PYTHON=$(PYTHON) is not a working Python 3.12 or newer with venv; using $$python" >&2; \
fi
endef

.DEFAULT_GOAL := help
.PHONY: help setup train bench test test-core core-python lint lock lock-core clean chaos soak audit test-cluster

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Build .venv from requirements-3.10.lock (skipped when nothing changed)

train: setup ## Train VA-learning on Pong on this machine; ARGS="--help" shows the options
	$(VENV)/bin/vantage train --game pong --algorithm va --preset cpu $(ARGS)

test: setup ## Run the tests; ARGS="-k name" chooses some
	$(VENV)/bin/python -m pytest -n 2 $(ARGS)

test-core: $(CORE_STAMP) ## Run the tests of the mathematics on Python 3.12+ and a current JAX, in .venv-core
	$(CORE_VENV)/bin/python -m pytest -n 2 $(CORE_TESTS) $(ARGS)

test-cluster: setup ## Run the tests of the Slurm engine on a cluster of their own (root; installs Slurm by apt)
	tests/cluster/packages.sh install
	VANTAGE_TEST_CLUSTER=1 $(VENV)/bin/python -m pytest -s -o faulthandler_timeout=3600 tests/cluster $(ARGS)

core-python: ## Print the Python that test-core would use; fails where there is none
	@$(FIND_CORE_PYTHON); echo "$$python"

bench: setup ## Measure the figures held against a bar; writes out/bench.json (about 11 minutes)
	$(VENV)/bin/python -m benchmarks.bench

chaos: setup ## Faults under a real run, about 30 minutes; ARGS="--rounds 1 --only 'kill -9'" is shorter
	$(VENV)/bin/python -m tests.chaos.chaos $(ARGS)

soak: setup ## A run left alone for 30 minutes: does anything grow? ARGS="--minutes 3" is shorter
	$(VENV)/bin/python -m tests.chaos.soak $(ARGS)

# Lists; it does not fail, because the pinned TensorFlow has some (docs/trust.md says which matter).
audit: ## List known vulnerabilities of requirements-3.10.lock; without a network it says so
	@set -e; $(FIND_PYTHON); \
	tools=$$(mktemp -d); trap 'rm -rf "$$tools"' EXIT; \
	"$$python" -m venv "$$tools"; \
	if "$$tools/bin/python" -m pip install --quiet --disable-pip-version-check '$(PIP_AUDIT)'; then \
		"$$tools/bin/pip-audit" --requirement requirements-3.10.lock --require-hashes --disable-pip --strict \
			--progress-spinner off --format markdown --output "$$tools/report" \
			&& echo "no known vulnerabilities" > "$$tools/report" || true; \
	fi; \
	if [ -s "$$tools/report" ]; then cat "$$tools/report"; else \
		echo "warning: nothing was audited: pip-audit or its database cannot be reached" >&2; \
	fi

lint: setup ## Check formatting, lint and types
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy

# Runs the command that is its argument with pip-tools of a throw-away environment of $$python.
define WITH_PIP_TOOLS
tools=$$(mktemp -d); trap 'rm -rf "$$tools"' EXIT; \
"$$python" -m venv "$$tools"; \
"$$tools/bin/python" -m pip install --quiet --upgrade pip '$(PIP_TOOLS)'; \
PATH="$$tools/bin:$$PATH" CUSTOM_COMPILE_COMMAND='make $@  # $(1)' $(1) --quiet $(ARGS)
endef

lock: ## Rewrite requirements-3.10.lock from pyproject.toml; ARGS=--upgrade moves the pins
	@set -e; $(FIND_PYTHON); $(call WITH_PIP_TOOLS,$(PIP_COMPILE))

lock-core: ## Rewrite requirements-core.lock from requirements-core.in; ARGS=--upgrade moves the pins
	@set -e; $(FIND_CORE_PYTHON); $(call WITH_PIP_TOOLS,$(CORE_PIP_COMPILE))

clean: ## Remove .venv, .venv-core, caches and builds (never runs/)
	rm -rf $(VENV) $(CORE_VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The editable install puts the packages and the `vantage` command into .venv; its requirements are
# all in the lock already, setuptools too.
#
# The binaries of Reverb and Courier look for libpython3.10.so.1.0 by that name. An interpreter with
# libpython built in (uv, conda) has not loaded it, and its own lib/ is in nobody's search path; the
# binaries do look beside themselves, so a link there is enough.
$(STAMP): requirements-3.10.lock pyproject.toml
	@set -e; $(FIND_PYTHON); \
	echo "Setting up $(VENV) with $$python"; \
	"$$python" -m venv $(VENV)
	$(VENV)/bin/python -m pip install --disable-pip-version-check --quiet \
		--require-hashes -r requirements-3.10.lock
	$(VENV)/bin/python -m pip install --disable-pip-version-check --quiet \
		--no-deps --no-build-isolation -e .
	@libpython=$$($(VENV)/bin/python -c 'import sys; print(sys.base_prefix)')/lib/libpython3.10.so.1.0; \
	if [ -e "$$libpython" ]; then \
		ln -sf "$$libpython" $(SITE)/reverb/; \
		ln -sf "$$libpython" $(SITE)/courier/python/; \
	fi
	@touch $(STAMP)
	@echo "Done. '$(VENV)/bin/vantage doctor' checks the machine."

$(CORE_STAMP): requirements-core.lock
	@set -e; $(FIND_CORE_PYTHON); \
	echo "Setting up $(CORE_VENV) with $$python"; \
	"$$python" -m venv --clear $(CORE_VENV)
	$(CORE_VENV)/bin/python -m pip install --disable-pip-version-check --quiet \
		--require-hashes -r requirements-core.lock
	@touch $(CORE_STAMP)
