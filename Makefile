# make reproduce   set everything up and run the demo edition end to end
# make test        set everything up and run the tests
# make bench       set everything up and run the benchmarks
# make help        list every target

PYTHON ?= python3.11
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
BIN   := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help setup reproduce real paper rehearsal test test-long test-slurm test-kubernetes test-faults test-gpu-kernels test-recipes test-site dist test-dist audit bench docs lint format lock clean

help:  ## show this list
	@grep -hE '^[a-z%-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | expand -t 17

setup: $(READY)  ## create the environment in .venv from the lock file

$(READY): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) is not there; install Python 3.11, or name one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $(TORCH)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --no-deps -e .
	@# pip would compile on one core, and packages' tests too. What cannot be compiled is compiled when it is imported.
	-@$(BIN)/python -m compileall -qq -j 0 -x '/(tests?|testing/_internal)/' $(VENV)/lib
	@touch $@

# A readable terminal: progress, running jobs, failures. `snakemake` alone prints what it always prints,
# such as the jobs and commands of `snakemake -n -p`.
SNAKEMAKE := $(BIN)/snakemake --logger rich

reproduce: $(READY)  ## run the demo edition; writes figures/demo and paper_tables/demo
	$(SNAKEMAKE) --cores $(CORES)

real: $(READY)  ## run the edition on real data; needs four archives in data/raw (or DIRECTRANK_RAW)
	$(SNAKEMAKE) --cores $(CORES) --configfile config/real.yaml

real-%: $(READY)  ## run one paper's part of it (real-qin2010, …) or one collection of one protocol (real-msrd, …)
	$(SNAKEMAKE) only_$* --cores $(CORES) --configfile config/real.yaml

paper: $(READY)  ## run the edition at the papers' scale; needs every archive and a cluster (docs/scale.md has the hours)
	$(SNAKEMAKE) --cores $(CORES) --configfile config/paper.yaml

paper-%: $(READY)  ## run one paper's edition at its scale (paper-qin2010, …); needs only the archives of that paper
	$(SNAKEMAKE) --cores $(CORES) --configfile config/paper_$*.yaml

rehearsal: $(READY)  ## run every experiment of the papers' scale once, on full-size stand-ins (docs/scale.md); needs OHSUMED.zip; writes benchmarks/results/rehearsal.md
	$(SNAKEMAKE) --cores $(CORES) --configfile config/rehearsal.yaml
	$(BIN)/python benchmarks/rehearsal_report.py config/rehearsal.yaml

# The tests start dozens of processes, which would compile every module again without bytecode.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder

test: $(READY)  ## run every test that takes seconds, on up to four cores
	$(PYTEST)

test-long: $(READY)  ## run the tests that take minutes, on up to four cores
	$(PYTEST) -m long

test-slurm: $(READY)  ## run an edition on a real Slurm on this machine and compare it with a local run (root, Debian)
	tests/slurm/cluster.sh up
	$(BIN)/python tests/slurm/compare.py --configfile $(SLURM_EDITION) $(if $(SLURM_LOCAL),--local $(SLURM_LOCAL)) && $(BIN)/python tests/slurm/limit.py; status=$$?; tests/slurm/cluster.sh down; exit $$status

test-kubernetes: $(READY)  ## run the tiny edition with Kubernetes' executor and a stand-in for its API (extra `kubernetes`, rsync)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'snakemake-executor-plugin-kubernetes==0.5.1' 'snakemake-storage-plugin-fs==1.1.3'
	$(BIN)/python tests/kubernetes/compare.py

test-faults: $(READY)  ## really kill processes, fill disks and damage files (root for all faults); writes benchmarks/results/faults.md
	$(BIN)/python tests/faults/run.py

test-gpu-kernels: $(READY)  ## test the kernels for a GPU in Triton's interpreter, and compile them (Triton takes 1 GB; no GPU needed)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check 'triton==3.9.0'
	TRITON_INTERPRET=1 $(PYTEST) tests/gpu
	$(PYTEST) tests/gpu

test-recipes: $(READY)  ## test the recipes, torchmetrics' form and the comparison with Rax, with the packages of the extra `recipes` (network)
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

dist: $(READY)  ## build the wheel and the sdist into dist
	rm -rf dist
	$(BIN)/python -m build

test-dist: dist  ## install both into new environments, with each available Python from 3.11 to 3.13 (network)
	$(BIN)/python tests/packaging/install.py dist --torch $(TORCH) $(if $(TORCH_INDEX),--torch-index $(TORCH_INDEX))

audit: $(READY)  ## compare the pinned dependencies with the database of known vulnerabilities (network)
	test -x $(VENV)/audit/bin/pip-audit || { $(PYTHON) -m venv $(VENV)/audit && $(VENV)/audit/bin/python -m pip install --quiet --disable-pip-version-check 'pip-audit>=2.7'; }
	$(VENV)/audit/bin/pip-audit --strict --require-hashes --disable-pip -r requirements.lock

bench: $(READY)  ## run the benchmarks; writes benchmarks/results
	$(BIN)/python benchmarks/run.py

docs: $(READY)  ## build the documentation into build/docs/index.html
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --write-all --jobs auto -c docs -d build/doctrees . build/docs

notebooks: $(READY)  ## run the notebooks, and write them and their pages with what they show
	OMP_NUM_THREADS=1 $(BIN)/python docs/notebook_pages.py

lint: $(READY)  ## run ruff, mypy, import contracts, spelling, snakefmt and snakemake --lint
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

lock: $(READY)  ## resolve the newest versions into requirements.lock, for every Python and platform
	echo '$(TORCH)' > $(VENV)/torch.constraint
	$(BIN)/uv pip compile --quiet --upgrade pyproject.toml --extra study --extra dev --extra docs \
	  --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url \
	  --no-emit-find-links --no-emit-package torch --no-emit-package pip --strip-extras \
	  --annotation-style line -c $(VENV)/torch.constraint -o $(VENV)/requirements.lock
	@# PyTorch has a command of its own in `setup`, and its CUDA build brings its libraries along.
	awk '/^[a-z0-9]/ {keep = !/^(nvidia-|cuda-|triton==)/} keep' $(VENV)/requirements.lock > requirements.lock
	$(BIN)/python envs/from_lock.py

clean:  ## remove the results of runs; archives, committed results and the environment stay
	rm -rf results logs data/prepared .snakemake
