# Every target does all the set-up it needs, in .venv; no ROS has to be installed.

PYTHON ?= python3

# Which ROS 2: jazzy or kilted, each in an environment of its own.
DISTRO ?= jazzy
export DISTRO

PREFIX := .venv$(if $(filter-out jazzy,$(DISTRO)),-$(DISTRO))
VENV := $(PREFIX)/bin
STEP := @$(PYTHON) tools/step.py
COLCON := build/colcon$(if $(filter-out jazzy,$(DISTRO)),-$(DISTRO))
NODE_TESTS := test/node test/demo test/examples test/view/test_following.py \
  test/view/test_page.py test/docs/test_printed_commands.py
# The C++ interfaces take half of the time of the colcon build, and nothing here uses them. To build
# them: make colcon CXX_INTERFACES=ON.
CXX_INTERFACES ?= OFF

# Variables of a sourced ROS or of another environment would mix their packages with ours.
unexport AMENT_PREFIX_PATH CMAKE_PREFIX_PATH COLCON_PREFIX_PATH LD_LIBRARY_PATH
unexport PYTHONHOME PYTHONPATH PYTHONSAFEPATH VIRTUAL_ENV
# Without bytecode every process compiles its imports again, which takes longer than most tests.
unexport PYTHONDONTWRITEBYTECODE
unexport RMW_IMPLEMENTATION ROS_DISTRO ROS_PYTHON_VERSION ROS_VERSION _ROS_WHEELS_BOOTSTRAP_COMPLETE

# Targets run one after the other, also with -j: they share the environment and the cores.
.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help install requirements run test pytest pytest-core pytest-node nightly lint
.PHONY: colcon colcon-build install-space sanitize soak faults fuzz coverage mutants
.PHONY: wheels core-wheel bench papers browser aarch64 docs screenshots clean

help:
	@echo "make install   create .venv with all dependencies and the package"
	@echo "make run       run the node on a demo robot"
	@echo "make test      all that CI runs: lint, pytest, colcon"
	@echo "make nightly   the tests that take long"
	@echo "make lint      style, types, direction of imports"
	@echo "make colcon    colcon build in a scratch workspace, and the node from there"
	@echo "make sanitize  the C code under AddressSanitizer, UBSan and ThreadSanitizer (CALLS=...)"
	@echo "make core-wheel  the wheel without ROS in dist/core, tested in an empty environment"
	@echo "make bench     the benchmarks"
	@echo "make papers    the figures and tables of the papers, and docs/papers.md"
	@echo "make browser   install Chromium for the tests of the viewer (needs apt and root)"
	@echo "make aarch64   install a compiler and an emulator for the tests on aarch64 (needs apt and root)"
	@echo "make docs      the documentation site, in build/docs"
	@echo "make screenshots  the pictures of the viewer in docs/pictures, docs/cookbook and build/robots"
	@echo "make soak      ten minutes of load on a node, then of bad input (MINUTES=...)"
	@echo "make faults    killed drivers and nodes, full disks, jumping clocks"
	@echo "make fuzz      100,000 inputs for every reader (RUNS=...)"
	@echo "make coverage  branches of the core that its tests execute"
	@echo "make mutants   small errors in the code, and how many of them the tests notice"
	@echo "make wheels    wheels for every supported Python, each tried with the tutorial (VERSIONS=...)"
	@echo "make clean     remove everything that these commands created"

install:
	@$(PYTHON) tools/install.py

# All but the package itself.
requirements:
	@$(PYTHON) tools/install.py --requirements

run: install
	@exec $(PYTHON) tools/foreground.py $(VENV)/rbda_ros demo

# Lint takes one core and needs only the requirements, so it runs during the build. colcon runs at low
# priority during the tests of the node.
test: requirements
	@mkdir -p build/logs; $(MAKE) --no-print-directory lint > build/logs/lint.log 2>&1 & lint=$$!; \
	  $(MAKE) --no-print-directory install; built=$$?; \
	  wait $$lint; linted=$$?; cat build/logs/lint.log; [ $$built$$linted = 00 ]
	@$(MAKE) --no-print-directory pytest-core
	@$(MAKE) --no-print-directory colcon-build IDLE=--idle > build/logs/colcon_beside.log 2>&1 & \
	  colcon=$$!; $(MAKE) --no-print-directory pytest-node; tested=$$?; \
	  wait $$colcon; built=$$?; cat build/logs/colcon_beside.log; [ $$tested$$built = 00 ]
	@$(MAKE) --no-print-directory install-space

pytest: pytest-core pytest-node

pytest-core: install
	$(VENV)/python -m pytest -q -n auto --dist worksteal $(addprefix --ignore ,$(NODE_TESTS))

# The tests of the node wait for messages, so no other tests run at the same time.
pytest-node: install
	$(VENV)/python -m pytest -q -n 2 --dist worksteal $(NODE_TESTS)

nightly: install
	$(VENV)/python -m pytest -q -n 2 --dist worksteal -m nightly

lint: requirements
	$(STEP) ruff-format "Formatting (ruff)" $(VENV)/ruff format --check .
	$(STEP) ruff "Style (ruff)" $(VENV)/ruff check .
	$(STEP) clang-format "Formatting of C (clang-format)" sh -c \
	  '$(VENV)/clang-format --dry-run -Werror $$(git ls-files "*.c" "*.h")'
	$(STEP) mypy "Types (mypy)" $(VENV)/python -m mypy
	$(STEP) imports "Direction of imports (import-linter)" $(VENV)/lint-imports
	$(STEP) architecture "Picture of the imports" $(VENV)/python tools/import_graph.py --check

colcon: colcon-build install-space

# --paths instead of --base-paths: otherwise colcon would build the packages inside .venv too.
colcon-build: install
	$(STEP) $(IDLE) colcon "Building with colcon" env PATH="$(CURDIR)/$(VENV):$$PATH" \
	  AMENT_PREFIX_PATH="$(CURDIR)/$(PREFIX)" CMAKE_PREFIX_PATH="$(CURDIR)/$(PREFIX)" \
	  colcon --log-base $(COLCON)/log build --paths . \
	  --build-base $(COLCON)/build --install-base $(COLCON)/install \
	  --event-handlers console_direct+ --cmake-args -GNinja -DBUILD_TESTING=OFF \
	  -DCMAKE_PROJECT_INCLUDE="$(CURDIR)/cmake/ros_wheels.cmake" \
	  -DPython3_EXECUTABLE="$(CURDIR)/$(VENV)/python" -DRBDA_ROS_CPP=$(CXX_INTERFACES)

install-space: install
	$(STEP) install-space "Running the node of the install space" \
	  $(VENV)/python tools/try_install_space.py $(COLCON)/install

bench: install
	@$(VENV)/python -m benchmark

papers: install
	@$(VENV)/python -m benchmark.papers

browser aarch64:
	@$(PYTHON) tools/debian.py $@

docs: install
	$(STEP) docs "Building the documentation (Sphinx)" $(VENV)/python -m sphinx -q -W --keep-going \
	  -b html -d build/doctrees docs build/docs
	$(STEP) links "Links of the documentation" $(VENV)/python tools/site_links.py build/docs
	@echo "build/docs/index.html"

screenshots: install browser
	@$(VENV)/python tools/screenshots.py
	@$(VENV)/python tools/screenshots.py --robots build/robots

# Each ends by itself with a table of verdicts; KEEP=--write writes it into docs/hardening.md.
MINUTES ?= 10
RUNS ?= 100000
CALLS ?= 1000000

soak: install
	$(VENV)/python -m tools.hardening.soak --minutes $(MINUTES) $(KEEP)
	$(VENV)/python -m tools.hardening.adversary --minutes $(MINUTES) $(KEEP)

faults: install
	$(VENV)/python -m tools.hardening.faults $(KEEP)

fuzz: install
	-@$(VENV)/python -m pip --disable-pip-version-check install -q atheris 2> build/logs/atheris.log
	$(VENV)/python -m tools.hardening.fuzz --runs $(RUNS) $(KEEP)

# The wheel without ROS: built, installed in an empty environment, and tried.
core-wheel: requirements
	$(VENV)/python tools/wheels.py --core $(VERSIONS)

sanitize: install
	$(VENV)/python -m tools.hardening.sanitize_all --calls $(CALLS) $(KEEP)

CORE := description cluster_tree algorithms kernels robot
CORE_FILES := rbda_ros/description/*,rbda_ros/cluster_tree/*,rbda_ros/algorithms/*,rbda_ros/kernels/*,rbda_ros/robot/*

coverage: install
	$(VENV)/python -m coverage run -m pytest -q $(addprefix test/,$(CORE)) test/test_errors.py
	$(VENV)/python -m coverage report --include "$(CORE_FILES)"

mutants: install
	$(VENV)/python -m tools.hardening.mutants $(KEEP)
	$(VENV)/python -m tools.hardening.gate_mutants $(KEEP)
	$(VENV)/python -m tools.hardening.stream_mutants $(KEEP)

# The core for every Python, and with the node where there are ROS wheels: dist/core and dist/node.
wheels: requirements
	$(VENV)/python tools/wheels.py $(VERSIONS)

clean:
	rm -rf .venv .venv-* build *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
