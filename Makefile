# Two commands do everything; each sets up what it needs in .venv.
.PHONY: help setup quickstart test test-full lint clean

WORKERS ?= 3
# bfloat16 is fast where the processor multiplies it, and many times slower than float32 elsewhere.
PRECISION ?= $(shell grep -qsE 'avx512_bf16|amx_bf16' /proc/cpuinfo && echo bf16 || echo fp32)

help:
	@echo "make quickstart   raw pages to a released language model, in minutes, on this machine"
	@echo "make test         lint, types, imports, and every test of the first tier (a quarter of an hour on 2 cores; WORKERS=8 on more)"
	@echo "make test-full    the long tier as well: peers as oracles, many kills, the whole quickstart"
	@echo "make lint         ruff, mypy, import-linter"

setup:
	@sh deploy/local/setup.sh dev

quickstart:
	@sh deploy/local/setup.sh dev
	@.venv/bin/ingot run quickstart --jobs 2 \
		--set pretrain.execution.layout.data=2 --set pretrain.execution.device=cpu \
		$(foreach step,pretrain sft dpo,--set $(step).precision=$(PRECISION))
	@echo "Talk to it:          .venv/bin/ingot chat quickstart/export"
	@echo "Let it continue:     .venv/bin/ingot complete quickstart/pretrain 'Return a string'"

lint: setup
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports --no-cache

test: lint
	@.venv/bin/python -m pytest -m "not full" --numprocesses=$(WORKERS)

test-full: lint
	@eval "$$(PYTHON=.venv/bin/python sh tests/peers/setup.sh .venv/peers)" && \
		.venv/bin/python -m pytest

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
