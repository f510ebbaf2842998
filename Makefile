# SPDX-License-Identifier: Apache-2.0
#
# The front door. `make help` lists the targets. The build itself is CMake's (CMakeLists.txt,
# presets in CMakePresets.json); this file only says which commands belong together.
BUILD ?= build
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
MINUTES ?= 9
JOB ?= sim
CTEST = ctest --test-dir $(BUILD) --output-on-failure --no-tests=error -j $(JOBS)
FORMATTED = $(shell git ls-files 'src/*.[ch]' 'include/*.h' 'tests/*.[ch]' 'bench/*.[ch]' 'examples/*.[ch]')

.DEFAULT_GOAL := build
.PHONY: help setup configure build demo test test-unit test-integration check lint fmt coverage \
        bench bench-peers long install clean

help: ## lists the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

setup: ## installs the Debian packages that are missing
	tools/setup --all

configure:
	cmake --preset release -B $(BUILD) $(CMAKE_ARGS) >/dev/null

build: configure ## builds everything into build/
	cmake --build $(BUILD) -j $(JOBS)

demo: ## builds the command and runs six lanes on the memory broker
	tools/setup --build
	@$(MAKE) --no-print-directory configure
	cmake --build $(BUILD) -j $(JOBS) --target laneway
	$(BUILD)/bin/laneway demo

test: setup build ## all tests, with a real Kafka and a real Pulsar when Java and Maven can be had
	tools/test-summary $(BUILD) -- $(CTEST)

test-unit: build ## the tests that need no broker and no network
	tools/test-summary $(BUILD) -- $(CTEST) -LE real

test-integration: build ## the tests on a real Kafka, a real Pulsar and the mock cluster
	tools/test-summary $(BUILD) -- $(CTEST) -L 'real|mock'

check: ## layers, sizes, banned calls, formatting
	tools/check-layers
	tools/check-sizes
	tools/check-banned
	tools/lint format

lint: ## clang-tidy, cppcheck and gcc -fanalyzer
	tools/lint all

fmt: ## formats all sources
	clang-format-14 -i $(FORMATTED)

coverage: ## line coverage of the unit tests, as text and HTML
	cmake --preset coverage
	cmake --build build-coverage -j $(JOBS)
	ctest --test-dir build-coverage -LE real -j $(JOBS) --output-on-failure
	gcovr -r . -f src/ --html-details build-coverage/coverage.html --txt build-coverage/coverage.txt build-coverage
	@tail -n 3 build-coverage/coverage.txt

bench: build ## every bench, with its figures
	tools/bench $(BUILD)

bench-peers: build ## laneway beside Pyrallel, Parallel Consumer and pulsar-dispatcher, on real brokers
	LANEWAY=$(abspath $(BUILD))/bin/laneway bench/peers/run
	BUILD_DIR=$(abspath $(BUILD)) bench/peers/pulsar-priority --check

long: build ## one long job: make long JOB=sim MINUTES=9
	tools/long $(JOB) --minutes $(MINUTES)

install: build ## installs to PREFIX
	cmake --install $(BUILD) --prefix $(PREFIX)

clean: ## removes the build folders
	rm -rf build build-asan build-tsan build-fuzz build-debug build-coverage build-lint build-analyzer build-aarch64 build-ci
