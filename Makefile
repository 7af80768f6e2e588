# Both commands make their own virtual environment and install what they need: Python 3.10 or later is enough.
PYTHON ?= python3
VENV ?= .venv
RUN = $(VENV)/bin/python
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo test gpu stubs docs clean

demo: $(VENV)/.demo
	$(RUN) examples/demo.py

test: $(VENV)/.test
	$(RUN) -m ruff check .
	$(VENV)/bin/lint-imports --no-cache
	$(RUN) -m mypy
	# Processors with AVX-512 have other tiles: these kernels are tested with those of AVX2, too.
	ONEDNN_MAX_CPU_ISA=AVX2 OMP_NUM_THREADS=1 $(RUN) -m pytest -n 2 tests/kernels/conv/test_prepacked_conv.py tests/kernels/nn/test_recurrent.py
	# What failed beside another worker is run again alone: processes that meet, get killed and are waited for depend on the load of the machine.
	OMP_NUM_THREADS=1 $(RUN) -m pytest -n 2 || OMP_NUM_THREADS=1 $(RUN) -m pytest --last-failed --last-failed-no-failures none

# On a machine with a GPU, with the Python whose torch sees it; other packages that are missing there can be on PYTHONPATH.
gpu:
	mkdir -p build
	-OMP_NUM_THREADS=1 PYTHONPATH=src:$$PYTHONPATH $(PYTHON) -m pytest tests/gpu -n 8 -p no:cacheprovider -p no:benchmark --junitxml=build/gpu-tests.xml
	PYTHONPATH=src:$$PYTHONPATH $(PYTHON) benchmarks/gpu.py --tests build/gpu-tests.xml $(GPU_OPTIONS)

# The site, in build/docs/html. Guides run again where a cell or the package has changed.
docs: $(VENV)/.docs
	$(RUN) scripts/make_docs.py

stubs: $(VENV)/.test
	$(RUN) scripts/make_stubs.py

clean:
	rm -rf $(VENV) build demo_output

$(VENV)/.demo: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install -q -e '.[demo]'
	touch $@

$(VENV)/.test: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install -q -e '.[test]'
	touch $@

$(VENV)/.docs: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install -q -e '.[docs]'
	touch $@
