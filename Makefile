# The commands of the repository. Each sets up what it needs and builds what it runs; a second run is quick.

.DEFAULT_GOAL := help
.PHONY: help setup build demo test test-asan test-tsan test-pythons fuzz docs bench build-time lint format device clean

# Where tools/setup.sh puts cmake and ninja if the system's are missing or old.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export NINJA_STATUS ?= [%f/%t %es] 

CMAKE_FLAGS ?=
build_preset = cmake --preset $(1) --log-level=NOTICE $(CMAKE_FLAGS) && cmake --build --preset $(1)

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup:  ## what the build needs: packages (as root) and .venv
	@tools/setup.sh

build: setup  ## the library, examples, benchmarks and tests, in build/release
	@$(call build_preset,release)

demo: build  ## train an MLP and LeNet on handwritten digits
	@build/release/examples/train_digits --data data --out build/demo

test: build  ## build and run every test
	@ctest --preset release

test-asan: setup  ## the tests under the address and undefined-behaviour sanitizers
	@$(call build_preset,asan)
	@ctest --preset asan

test-tsan: setup  ## the tests under the thread sanitizer
	@$(call build_preset,tsan)
	@ctest --preset tsan

test-pythons: setup  ## build, install and try the wheel with every Python from 3.10 to 3.13 there is
	@tools/test_pythons.sh

fuzz: build  ## random operators, networks and files for so many MINUTES (10); `make fuzz MINUTES=60`
	@tools/setup.sh fuzz
	@MINUTES=$(or $(MINUTES),10) tools/fuzz.sh

docs: build  ## the reference of every operator and class, in build/docs/index.html
	@PYTHONPATH=build/release/python .venv/bin/python tools/make_docs.py build/docs

bench: build  ## times, and ratios to the peers named by PEER_TORCH and PEER_MXNET
	@python3 bench/run.py $(BENCH_FLAGS)

build-time: setup  ## how long a clean build takes
	@tools/build_time.sh

lint: build  ## formatting, layering and static checks of what changed (ALL=1: of everything)
	@tools/setup.sh lint
	@tools/lint.sh build/release

format:  ## write the formatting that lint asks for
	@tools/setup.sh lint
	@find symbind python/src examples bench tests -type f \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \) \
	  -exec clang-format -i {} +
	@.venv/bin/ruff format --no-cache --quiet .

device:  ## on a machine with a GPU: build with CUDA and test (times: tools/device_check.sh bench)
	@tools/device_check.sh

clean:  ## remove build/ (the virtual environment stays)
	@rm -rf build
