# make reproduce   set everything up and run the demo edition end to end
# make test        set everything up and run the tests
# make bench       set everything up and run the benchmarks
# make help        list every target

# The first one that is there; `make … PYTHON=…` names another.
PYTHON ?= $(shell for version in 3.11 3.12 3.13 3.14; do command -v python$$version && break; done || echo python3)
# The edition that `make test-slurm` submits.
SLURM_EDITION ?= config/demo.yaml
# A folder where that edition has been run on this machine; if none is given, `make test-slurm` runs it.
SLURM_LOCAL ?=
CORES  ?= $(shell nproc 2>/dev/null || sysctl -n hw.ncpu)
# PyTorch comes from the same index as everything else, with CUDA if that index has such a build.
# TORCH_INDEX names an index of other builds (CPU, another CUDA), as on PyTorch's installation page.
TORCH       ?= torch==2.13.0
TORCH_INDEX ?=

VENV  := .venv
READY := $(VENV)/.ready
TOOLS := $(VENV)/.tools
BIN   := $(VENV)/bin
PIP   := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help setup tools reproduce real paper rehearsal test test-slow test-long test-slurm test-kubernetes test-faults test-gpu-kernels test-recipes test-site dist test-dist audit bench docs notebooks lint format lock clean

help:  ## show this list
	@awk -F ':.*## *' '/^[a-z%-]+:.*##/ {printf "%-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY)  ## create the environment in .venv from the lock file

tools: $(TOOLS)  ## the same with what tests, checks and the documentation need

$(READY): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) is not there; install Python 3.11 to 3.14, or name one: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' || { echo "error: $(PYTHON) is not one of Python 3.11 to 3.14; name one: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo 'installing the packages of requirements.lock (1.4 GB on disk)'
	$(PIP) --require-hashes -r requirements.lock
	@# Without a GPU the build for CPUs, if the index has it: the other brings 3 GB of CUDA's libraries.
	@case "$(TORCH_INDEX)$(findstring +,$(TORCH))$$(command -v nvidia-smi)" in \
	  '') echo "installing $(TORCH), the build for CPUs (0.2 GB to download) if the index has it, else with CUDA (3 GB)"; \
	      $(PIP) $(TORCH)+cpu 2>/dev/null || $(PIP) $(TORCH);; \
	  *) echo "installing $(TORCH); a build with CUDA is 3 GB to download"; \
	     $(PIP) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $(TORCH);; \
	esac
	$(PIP) --no-deps -e .
	@# pip would compile on one core, and packages' tests too. What cannot be compiled is compiled when it is imported.
	-@$(BIN)/python -m compileall -qq -j 0 -x '/(tests?|testing/_internal)/' $(VENV)/lib
	@touch $@

# What those who change the code need besides: tests, checks, the documentation.
$(TOOLS): requirements-dev.lock $(READY)
	$(PIP) --require-hashes -r requirements-dev.lock
	@touch $@

# A readable terminal: progress, running jobs, failures. `snakemake` alone prints what it always prints,
# such as the jobs and commands of `snakemake -n -p`.
SNAKEMAKE := $(BIN)/snakemake --logger rich

# A machine's GPUs train networks while its cores train everything else. Four processes share a GPU.
# GPUS=0 trains on the cores only.
GPUS ?= $(shell nvidia-smi --list-gpus 2>/dev/null | wc -l)
ON_GPUS = $(if $(filter-out 0,$(strip $(GPUS))),--config device=cuda fits_per_gpu=4 --resources gpu=$(shell expr 4 \* $(GPUS)))

reproduce: $(READY)  ## run the demo edition; writes figures/demo and paper_tables/demo
	$(SNAKEMAKE) --cores $(CORES)

real: $(READY)  ## run the edition on real data; needs four archives in data/raw (or DIRECTRANK_RAW)
	$(SNAKEMAKE) --cores $(CORES) --configfile config/real.yaml $(ON_GPUS)

real-%: $(READY)  ## run one paper's part of it (real-qin2010, …), one collection of one protocol (real-msrd, …), or its real-training_size
	$(SNAKEMAKE) only_$* --cores $(CORES) --configfile config/real.yaml $(ON_GPUS)

paper: $(READY)  ## run the edition at the papers' scale, on GPUs where there are some; needs every archive (docs/scale.md has the hours)
	$(SNAKEMAKE) --cores $(CORES) --configfile config/paper.yaml $(ON_GPUS)

paper-%: $(READY)  ## run one paper's edition at its scale (paper-qin2010, …); needs only the archives of that paper
	$(SNAKEMAKE) --cores $(CORES) --configfile config/paper_$*.yaml $(ON_GPUS)

rehearsal: $(READY)  ## run every experiment of the papers' scale once, on full-size stand-ins (docs/scale.md); needs OHSUMED.zip; writes benchmarks/results/rehearsal.md
	$(SNAKEMAKE) --cores $(CORES) --configfile config/rehearsal.yaml
	$(BIN)/python benchmarks/rehearsal_report.py config/rehearsal.yaml

# The tests start dozens of processes, which would compile every module again without bytecode.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder

test: $(TOOLS)  ## run the quick tests, on up to four cores (some four minutes on two)
	$(PYTEST)

test-slow: $(TOOLS)  ## run the tests that take seconds each: workflows, commands, trainings, drawings (some eight minutes on two)
	$(PYTEST) -m 'slow and not long'

test-long: $(TOOLS)  ## run the tests that take minutes, on up to four cores
	$(PYTEST) -m long

test-slurm: $(TOOLS)  ## run an edition on a real Slurm on this machine and compare it with a local run (root, Debian)
	tests/slurm/cluster.sh up
	$(BIN)/python tests/slurm/compare.py --configfile $(SLURM_EDITION) $(if $(SLURM_LOCAL),--local $(SLURM_LOCAL)) && $(BIN)/python tests/slurm/limit.py; status=$$?; tests/slurm/cluster.sh down; exit $$status

test-kubernetes: $(TOOLS)  ## run the tiny edition with Kubernetes' executor and a stand-in for its API (extra `kubernetes`, rsync)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'snakemake-executor-plugin-kubernetes==0.5.1' 'snakemake-storage-plugin-fs==1.1.3'
	$(BIN)/python tests/kubernetes/compare.py

test-faults: $(TOOLS)  ## really kill processes, fill disks and damage files (root for all faults); writes benchmarks/results/faults.md
	$(BIN)/python tests/faults/run.py

test-gpu-kernels: $(TOOLS)  ## test the kernels for a GPU in Triton's interpreter, and compile them (Triton takes 1 GB; no GPU needed)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check 'triton==3.9.0'
	TRITON_INTERPRET=1 $(PYTEST) tests/gpu
	$(PYTEST) tests/gpu

test-recipes: $(TOOLS)  ## test the recipes, torchmetrics' form and the comparison with Rax, with the packages of the extra `recipes` (network)
	test -x $(VENV)/recipes/bin/python || $(PYTHON) -m venv $(VENV)/recipes
	realpath $(VENV)/lib/python*/site-packages > $$(echo $(VENV)/recipes/lib/python*/site-packages)/main.pth
	$(VENV)/recipes/bin/python -m pip install --quiet --disable-pip-version-check -e '.[recipes]'
	$(VENV)/recipes/bin/python -m pytest -q tests/docs/test_recipes.py tests/docs/test_coming_from.py tests/test_torchmetrics.py

test-site: docs  ## test the documentation in a real browser (needs Debian's chromium and npm, and the network)
	test -x $(VENV)/site/bin/python || $(PYTHON) -m venv $(VENV)/site
	realpath $(VENV)/lib/python*/site-packages > $$(echo $(VENV)/site/lib/python*/site-packages)/main.pth
	$(VENV)/site/bin/python -m pip install --quiet --disable-pip-version-check -e . 'playwright==1.65.2'
	npm install --silent --no-audit --no-fund --prefix $(VENV)/site axe-core@4.14.1
	$(VENV)/site/bin/python -m pytest -q tests/site

dist: $(TOOLS)  ## build the wheel and the sdist into dist
	rm -rf dist
	$(BIN)/python -m build

test-dist: dist  ## install both into new environments, with each available Python from 3.11 to 3.14 (network)
	$(BIN)/python tests/packaging/install.py dist --torch $(TORCH) $(if $(TORCH_INDEX),--torch-index $(TORCH_INDEX))

audit: $(READY)  ## compare the pinned dependencies with the database of known vulnerabilities (network)
	test -x $(VENV)/audit/bin/pip-audit || { $(PYTHON) -m venv $(VENV)/audit && $(VENV)/audit/bin/python -m pip install --quiet --disable-pip-version-check 'pip-audit>=2.7'; }
	$(VENV)/audit/bin/pip-audit --strict --require-hashes --disable-pip -r requirements-dev.lock

bench: $(TOOLS)  ## run the benchmarks; writes benchmarks/results
	$(BIN)/python benchmarks/run.py

docs: $(TOOLS)  ## build the documentation into build/docs/index.html
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --write-all --jobs auto -c docs -d build/doctrees . build/docs

notebooks: $(TOOLS)  ## run the notebooks, and write them and their pages with what they show
	OMP_NUM_THREADS=1 $(BIN)/python docs/notebook_pages.py

lint: $(TOOLS)  ## run ruff, mypy, import contracts, spelling, snakefmt and snakemake --lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/snakemake --lint

format: $(TOOLS)  ## rewrite the code in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile workflow

COMPILE := $(BIN)/uv pip compile --quiet pyproject.toml --universal --python-version 3.11 --generate-hashes \
  --no-header --no-emit-index-url --no-emit-find-links --no-emit-package torch --no-emit-package pip \
  --strip-extras --annotation-style line
WITHOUT_CUDA := awk '/^[a-z0-9]/ {keep = !/^(nvidia-|cuda-|triton==)/} keep'

lock: $(TOOLS)  ## resolve the newest versions into the lock files, for every Python and platform
	echo '$(TORCH)' > $(VENV)/torch.constraint
	$(COMPILE) --upgrade --extra study --extra dev --extra docs -c $(VENV)/torch.constraint -o $(VENV)/all.lock
	$(COMPILE) --extra study -c $(VENV)/torch.constraint -c $(VENV)/all.lock -o $(VENV)/study.lock
	@# PyTorch has a command of its own in `setup`, and its CUDA build brings its libraries along.
	$(WITHOUT_CUDA) $(VENV)/all.lock > requirements-dev.lock
	$(WITHOUT_CUDA) $(VENV)/study.lock > requirements.lock
	$(BIN)/python envs/from_lock.py

clean:  ## remove the results of runs; archives, committed results and the environment stay
	rm -rf results logs data/prepared .snakemake
