# Every target sets up what it needs: Python 3.11 or later, pip and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready

.PHONY: demo test lint format docs bench release-check clean

demo: $(INSTALLED)
	$(BIN)/python examples/demo.py

# Two workers on two cores: BLAS threads of their own would only wait for each other.
test: lint
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(READY)
	$(BIN)/python docs/figures/flipped_labels.py
	$(BIN)/python docs/figures/estimators.py
	$(BIN)/python docs/figures/gallery.py
	$(BIN)/python -m sphinx -q -W -b html docs site
	$(BIN)/python -m pytest tests/test_docs.py

bench: $(READY) .venv-baseline/.ready
	$(BIN)/python benchmarks/overhead.py

.venv-baseline/.ready:
	$(PYTHON) -m venv .venv-baseline
	.venv-baseline/bin/python -m pip install --quiet --disable-pip-version-check 'pydvl==0.10.0'
	touch $@

# What benchmarks/compared.py compares with. OpenDataVal's torch is too old for newer transformers.
.venv-compared/.ready:
	$(PYTHON) -m venv .venv-compared
	.venv-compared/bin/python -m pip install --quiet --disable-pip-version-check \
		'cleanlab==2.9.0' 'pydvl==0.10.0' 'opendataval==1.3.0' 'transformers<4.45'
	touch $@

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[plots]' -c constraints.txt
	touch $@

$(READY): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e . --group dev -c constraints.txt
	touch $@

# Builds wheel and sdist, installs the wheel into an empty environment outside the checkout, and runs the README's commands there.
release-check: $(READY)
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python tests/release_check.py dist

clean:
	rm -rf $(VENV) .venv-baseline .venv-compared runs .pytest_cache .mypy_cache .ruff_cache .hypothesis
