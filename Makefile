# make reproduce   set everything up and run the demo edition end to end
# make test        set everything up and run the tests
# make bench       set everything up and run the benchmarks
# make help        every target

PYTHON ?= python3.11
# What `make test-slurm` submits.
SLURM_EDITION ?= config/demo.yaml
# A folder where that edition has been run on this machine; without, `make test-slurm` runs it.
SLURM_LOCAL ?=
CORES  ?= $(shell nproc 2>/dev/null || sysctl -n hw.ncpu)
# PyTorch comes from the same index as everything else. Where that index has a CUDA build, that is
# what is installed; TORCH_INDEX names an index of other builds (CPU, another CUDA), as PyTorch's
# own installation page gives it.
TORCH       ?= torch==2.13.0
TORCH_INDEX ?=

VENV  := .venv
READY := $(VENV)/.ready
BIN   := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help setup reproduce real paper test test-long test-slurm test-kubernetes test-faults test-recipes dist test-dist audit bench docs lint format lock clean

help:  ## this list
	@grep -hE '^[a-z%-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | expand -t 12

setup: $(READY)  ## create the environment in .venv from the lock file

$(READY): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) is not there; install Python 3.11, or name one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $(TORCH)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

reproduce: $(READY)  ## the demo edition: figures/demo, paper_tables/demo
	$(BIN)/snakemake --cores $(CORES)

real: $(READY)  ## the edition of real data; needs four archives in data/raw (or DIRECTRANK_RAW)
	$(BIN)/snakemake --cores $(CORES) --configfile config/real.yaml

real-%: $(READY)  ## one paper's part of it, such as real-qin2010, or a collection's of one protocol, such as real-msrd
	$(BIN)/snakemake only_$* --cores $(CORES) --configfile config/real.yaml

paper: $(READY)  ## the edition at the papers' scale; needs every archive and a cluster (docs/scale.md has the hours)
	$(BIN)/snakemake --cores $(CORES) --configfile config/paper.yaml

test: $(READY)  ## every test that takes seconds, on up to four cores
	$(BIN)/python -m pytest -q -n logical --maxprocesses 4 --dist loadfile

test-long: $(READY)  ## the tests that take minutes
	$(BIN)/python -m pytest -q -m long

test-slurm: $(READY)  ## an edition through a real Slurm on this machine, compared with a local run (root, Debian)
	tests/slurm/cluster.sh up
	$(BIN)/python tests/slurm/compare.py --configfile $(SLURM_EDITION) $(if $(SLURM_LOCAL),--local $(SLURM_LOCAL)) && $(BIN)/python tests/slurm/limit.py; status=$$?; tests/slurm/cluster.sh down; exit $$status

test-kubernetes: $(READY)  ## the tiny edition through Kubernetes' executor and a stand-in of its API (extra `kubernetes`, rsync)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'snakemake-executor-plugin-kubernetes==0.5.1' 'snakemake-storage-plugin-fs==1.1.3'
	$(BIN)/python tests/kubernetes/compare.py

test-faults: $(READY)  ## kills, full disks, damaged files for real (root for all of them); writes benchmarks/results/faults.md
	$(BIN)/python tests/faults/run.py

test-recipes: $(READY)  ## the recipes and the comparison with Rax, with the packages of the extra `recipes` (network)
	test -x $(VENV)/recipes/bin/python || $(PYTHON) -m venv $(VENV)/recipes
	realpath $(VENV)/lib/python*/site-packages > $$(echo $(VENV)/recipes/lib/python*/site-packages)/main.pth
	$(VENV)/recipes/bin/python -m pip install --quiet --disable-pip-version-check -e '.[recipes]'
	$(VENV)/recipes/bin/python -m pytest -q tests/docs/test_recipes.py tests/docs/test_coming_from.py

dist: $(READY)  ## the wheel and the sdist, into dist
	rm -rf dist
	$(BIN)/python -m build

test-dist: dist  ## both installed into new environments, with each Python from 3.11 to 3.13 that is here (network)
	$(BIN)/python tests/packaging/install.py dist --torch $(TORCH) $(if $(TORCH_INDEX),--torch-index $(TORCH_INDEX))

audit: $(READY)  ## the pinned dependencies against the database of known vulnerabilities (network)
	test -x $(VENV)/audit/bin/pip-audit || { $(PYTHON) -m venv $(VENV)/audit && $(VENV)/audit/bin/python -m pip install --quiet --disable-pip-version-check 'pip-audit>=2.7'; }
	$(VENV)/audit/bin/pip-audit --strict --require-hashes --disable-pip -r requirements.lock

bench: $(READY)  ## benchmarks; writes benchmarks/results
	$(BIN)/python benchmarks/run.py

docs: $(READY)  ## the documentation, into build/docs/index.html
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --write-all -c docs -d build/doctrees . build/docs

lint: $(READY)  ## ruff, mypy, import contracts, spelling, snakefmt, snakemake --lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/snakemake --lint

format: $(READY)  ## rewrite the code in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile workflow

lock: $(READY)  ## resolve the newest versions into requirements.lock
	echo '$(TORCH)' > $(VENV)/torch.constraint
	$(BIN)/pip-compile --quiet --upgrade pyproject.toml --extra study --extra dev --extra docs --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options --no-header \
	  --unsafe-package torch --unsafe-package pip --strip-extras \
	  --annotation-style=line -c $(VENV)/torch.constraint -o requirements.lock

clean:  ## remove what runs made; archives, committed results and the environment stay
	rm -rf results logs data/prepared .snakemake
