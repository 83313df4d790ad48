# Set-up and the everyday commands. `make train` and `make test` work on a fresh Linux machine with
# Python 3.11 or 3.10: they build .venv first. PYTHON=/path/to/python chooses the interpreter,
# DEVICE=cuda or DEVICE=tpu what the learner computes on; without them .venv keeps what it has, and a
# new .venv gets the first interpreter that is found and no accelerator.

# In order of preference; each has a lock of its own.
SUPPORTED := 3.11 3.10
export PYTHON
VENV := .venv
BUILT := $(shell sed -n 's/^version = \(3\.[0-9]*\)\..*/\1/p' $(VENV)/pyvenv.cfg 2>/dev/null)
VERSION := $(or $(if $(PYTHON),,$(BUILT)), \
	$(shell PYTHON='$(PYTHON)' tools/find_python.sh --version $(SUPPORTED) 2>/dev/null))
ifeq ($(VERSION),)
ifneq ($(PYTHON),)
$(error PYTHON=$(PYTHON) is not a working Python $(subst $() , or ,$(SUPPORTED)) with venv)
endif
# There is none, as the set-up will say.
VERSION := $(firstword $(SUPPORTED))
endif
# Each has a lock for each Python, of what comes on top of the lock of that Python.
ACCELERATORS := cuda tpu
ifeq ($(DEVICE),)
DEVICE := $(or $(lastword $(subst -, ,$(notdir $(wildcard $(VENV)/.setup-*-*)))),cpu)
endif
ifeq ($(filter $(DEVICE),cpu $(ACCELERATORS)),)
$(error DEVICE=$(DEVICE) is none of cpu $(ACCELERATORS))
endif
LOCK := requirements-$(VERSION).lock
DEVICE_LOCK := $(if $(filter-out cpu,$(DEVICE)),requirements-$(VERSION)-$(DEVICE).lock)
# The one stamp of a whole .venv: for another Python or device it is built anew.
STAMP := $(VENV)/.setup-$(VERSION)$(addprefix -,$(filter-out cpu,$(DEVICE)))
SITE := $(VENV)/lib/python$(VERSION)/site-packages
INSTALL := $(VENV)/bin/python -m pip install --disable-pip-version-check --quiet
# The lock is whole, so pip has nothing to resolve; rliable has no wheel, and is built by our setuptools.
INSTALL_LOCKED := $(INSTALL) --require-hashes --no-deps --only-binary=:all: --no-binary=rliable \
	--no-build-isolation --use-pep517

# Two more than small machines have cores: tests of whole runs often wait.
IN_PARALLEL := -n 4 --dist worksteal

# The other of the two, for the tests that depend on it.
OTHER := $(firstword $(filter-out $(VERSION),$(SUPPORTED)))
OTHER_TESTS := tests/reverb_server tests/launch/test_program.py tests/launch/test_old_run_directories.py \
	tests/launch/test_courier_stand_in.py tests/launch/commands/doctor tests/test_packaging.py

# The mathematics alone, on a current Python and JAX: no TensorFlow, no Reverb, no Launchpad, and no
# install either, because pytest finds the packages in the folder.
CORE_VERSION := 3.13
CORE_VENV := .venv-core
CORE_STAMP := $(CORE_VENV)/.setup-$(CORE_VERSION)
CORE_TESTS := tests/tabular tests/learner tests/actors tests/report
FIND_CORE_PYTHON := PYTHON=$(CORE_PYTHON) tools/find_python.sh $(CORE_VERSION)

# A throw-away environment, and what is installed into it.
MAKE_TOOLS := tools=$$(mktemp -d); trap 'rm -rf "$$tools"' EXIT; \
	"$$(tools/find_python.sh $(SUPPORTED))" -m venv "$$tools"
UV := uv==0.13.8
PIP_AUDIT := pip-audit==2.9.0
COMPILE := uv pip compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links \
	--custom-compile-command 'make lock' $(ARGS)
# What an accelerator needs beside the lock of a Python; the names of what is in that one, which uv
# appends, are cut off. libtpu has wheels for glibc 2.31 and later; uv's `linux` is an older one.
define LOCK_DEVICE
"$$tools/bin/"$(COMPILE) --python-platform $(if $(filter tpu,$(1)),x86_64-manylinux_2_31,linux) \
	--python-version $$version --extra $(1) --constraint requirements-$$version.lock \
	$$(sed -n 's/^\([a-z0-9-]*\)==.*/--no-emit-package \1/p' requirements-$$version.lock) \
	--output-file requirements-$$version-$(1).lock pyproject.toml > /dev/null; \
sed -i '/^$$/,$$d' requirements-$$version-$(1).lock
endef

.DEFAULT_GOAL := help
.PHONY: help setup train bench test test-other other-python test-core core-python lint lock clean chaos soak audit \
	test-cluster test-kubernetes

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Build .venv from its locks (skipped when nothing changed); DEVICE=cuda or tpu for that learner

train: setup ## Train VA-learning on Pong on this machine; ARGS="--help" shows the options
	$(VENV)/bin/vantage train --game pong --algorithm va --preset cpu $(ARGS)

test: setup ## Run the tests; ARGS="-k name" chooses some
	$(VENV)/bin/python -m pytest $(IN_PARALLEL) $(ARGS)

test-other: ## Run the tests of Reverb and Launchpad on the other Python, in an environment of its own
	$(MAKE) test VENV=.venv-$(OTHER) PYTHON="$$(PYTHON= tools/find_python.sh $(OTHER))" \
		ARGS="$(OTHER_TESTS) $(ARGS)"

other-python: ## Print the Python that test-other would use; fails where there is none
	@PYTHON= tools/find_python.sh $(OTHER)

test-core: $(CORE_STAMP) ## Run the tests of the mathematics on Python 3.13 and a current JAX, in .venv-core
	$(CORE_VENV)/bin/python -m pytest $(IN_PARALLEL) $(CORE_TESTS) $(ARGS)

test-cluster: setup ## Run the tests of the Slurm engine on a cluster of their own (root; installs Slurm by apt)
	tests/cluster/packages.sh install
	VANTAGE_TEST_CLUSTER=1 $(VENV)/bin/python -m pytest -s -o faulthandler_timeout=3600 tests/cluster $(ARGS)

test-kubernetes: setup ## Run the tests of the Kubernetes engine on a control plane from KUBEBUILDER_ASSETS (root)
	$(VENV)/bin/python -m pytest -s -o faulthandler_timeout=3600 tests/cluster/test_kubernetes_run.py $(ARGS)

core-python: ## Print the Python that test-core would use; fails where there is none
	@$(FIND_CORE_PYTHON)

bench: setup ## Measure the figures held against a bar; writes out/bench.json (about 15 minutes)
	$(VENV)/bin/python -m benchmarks.bench

chaos: setup ## Faults under real runs, about 40 minutes; ARGS="--quick-rounds 1 --only 'kill -9'" is shorter
	$(VENV)/bin/python -m tests.chaos.chaos $(ARGS)

soak: setup ## A run left alone for 30 minutes: does anything grow? ARGS="--minutes 3" is shorter
	$(VENV)/bin/python -m tests.chaos.soak $(ARGS)

# Lists; it does not fail, because the pinned TensorFlow has some (docs/trust.md says which matter).
audit: ## List known vulnerabilities of both locks; without a network it says so
	@$(MAKE_TOOLS); "$$tools/bin/python" -m pip install --quiet --disable-pip-version-check '$(PIP_AUDIT)'; \
	for version in $(SUPPORTED); do \
		report="$$tools/report-$$version"; \
		"$$tools/bin/pip-audit" --requirement requirements-$$version.lock --require-hashes --disable-pip \
			--strict --progress-spinner off --format markdown --output "$$report" \
			&& echo "no known vulnerabilities" > "$$report"; \
		if [ -s "$$report" ]; then echo "Python $$version"; cat "$$report"; else \
			echo "warning: nothing was audited: pip-audit or its database cannot be reached" >&2; \
		fi; \
	done

lint: setup ## Check formatting, lint and types
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy

# The extra `unresolvable` and the overrides that resolve it are in pyproject.toml.
lock: ## Rewrite the locks from pyproject.toml and requirements-core.in; ARGS=--upgrade moves the pins
	@set -e; $(MAKE_TOOLS); \
	"$$tools/bin/python" -m pip install --quiet --disable-pip-version-check '$(UV)'; \
	for version in $(SUPPORTED); do \
		"$$tools/bin/"$(COMPILE) --python-platform linux --python-version $$version --extra dev --extra unresolvable \
			--output-file requirements-$$version.lock pyproject.toml > /dev/null; \
		$(foreach device,$(ACCELERATORS),$(call LOCK_DEVICE,$(device));) \
	done; \
	"$$tools/bin/"$(COMPILE) --python-platform linux --python-version $(CORE_VERSION) \
		--output-file requirements-core.lock requirements-core.in > /dev/null

clean: ## Remove .venv and its relatives, caches and builds (never runs/)
	rm -rf $(VENV) .venv-* build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The editable install puts the packages and the `vantage` command into .venv; its requirements are
# all in the lock already, setuptools too.
$(STAMP): $(LOCK) $(DEVICE_LOCK) requirements-3.10.lock pyproject.toml
	@set -e; python=$$(tools/find_python.sh $(VERSION)); \
	echo "Setting up $(VENV) with $$("$$python" --version), $$python"; \
	"$$python" -m venv $(if $(wildcard $(STAMP)),,--clear) $(VENV)
	@sed -n '/^setuptools==/,/[^\\]$$/p' $(LOCK) > $(VENV)/setuptools.lock
	$(INSTALL_LOCKED) -r $(VENV)/setuptools.lock
	$(INSTALL_LOCKED) -r $(LOCK)
	$(if $(DEVICE_LOCK),$(INSTALL_LOCKED) -r $(DEVICE_LOCK))
	$(INSTALL) --no-deps --no-build-isolation -e .
	$(FINISH_$(VERSION))
	$(OWN_AGENTS)
	@touch $(STAMP)
	@echo "Done. '$(VENV)/bin/vantage doctor' checks the machine."

# A checkout under umask 002 can be written by its group, and what others can write to is not played
# (docs/trust.md). An image has no agents.
OWN_AGENTS := @if [ -d agents ]; then chmod -R go-w agents; fi

# Launchpad has no wheel for Python 3.11; that of 3.10 does (see launch/courier_stand_in.py), and pip
# places it when it is told that this is meant.
define FINISH_3.11
	@sed -n '/^dm-launchpad==/,/[^\\]$$/p' requirements-3.10.lock > $(VENV)/launchpad.lock
	$(INSTALL) --require-hashes --no-deps --only-binary=:all: --upgrade --target $(SITE) \
		--python-version 3.10 --implementation cp --abi cp310 -r $(VENV)/launchpad.lock
endef

# The binaries of Reverb 0.7 and Courier look for libpython3.10.so.1.0 by that name. An interpreter
# with libpython built in (uv, conda) has not loaded it, and its own lib/ is in nobody's search path;
# the binaries do look beside themselves, so a link there is enough. Reverb 0.14 needs none.
define FINISH_3.10
	@libpython=$$($(VENV)/bin/python -c 'import sys; print(sys.base_prefix)')/lib/libpython3.10.so.1.0; \
	if [ -e "$$libpython" ]; then \
		ln -sf "$$libpython" $(SITE)/reverb/; \
		ln -sf "$$libpython" $(SITE)/courier/python/; \
	fi
endef

$(CORE_STAMP): requirements-core.lock
	@set -e; python=$$($(FIND_CORE_PYTHON)); \
	echo "Setting up $(CORE_VENV) with $$("$$python" --version), $$python"; \
	"$$python" -m venv --clear $(CORE_VENV)
	$(CORE_VENV)/bin/python -m pip install --disable-pip-version-check --quiet \
		--require-hashes --no-deps --only-binary=:all: -r requirements-core.lock
	@touch $(CORE_STAMP)
