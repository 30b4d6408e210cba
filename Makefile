# A thin face over CMake; everything it does can be done with `cmake --preset …` and `ctest --preset …` as well.
#
#   make demo       install what is missing, build, decode a small video dataset, print the summary
#                   (DATASET=DIR make demo takes a folder of yours; ARGS="--concurrency 4" adds options)
#   make test       install what is missing, build, run all tests
#   make build      build (PRESET=release, dev or tsan)
#   make test-dev   the tests under AddressSanitizer and UndefinedBehaviorSanitizer
#   make test-tsan  the tests under ThreadSanitizer
#   make bench      build and run weir-bench decode, with its price list, on the demo's dataset (or DATASET=DIR): minutes;
#                   beside Python's libraries, too, once bench/peers/setup has been run
#                   (BENCH_ARGS="engine --quick" make bench runs something else)
#   make install    install what was built, below PREFIX (default /usr/local)
#   make format     clang-format every C file
#   make clean      remove what was built

PRESET ?= release
PREFIX ?= /usr/local
CMAKE_ARGS ?=
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
ARGS ?=

BUILD := build/$(PRESET)
DEMO := build/demo
PEERS := $(wildcard build/peers/bin/python)
BENCH_ARGS ?= decode --dataset-dir '$(dataset)' --concurrency 1,2,4 --runs 3 --price-list $(if $(PEERS),--peers)

# What demo and bench run on: the user's folder, or ours, made when it is missing.
dataset = $(or $(DATASET),$(DEMO)/dataset)
need_dataset = $(if $(DATASET),,./scripts/make-dataset $(DEMO)/dataset)

.PHONY: demo test test-dev test-tsan build install bench format clean setup
.DEFAULT_GOAL := build

setup:
	@./scripts/setup

build: setup
	cmake --preset $(PRESET) $(CMAKE_ARGS)
	cmake --build --preset $(PRESET) --parallel $(JOBS)

demo: build
	$(need_dataset)
	$(BUILD)/examples/performance_analysis --dataset-dir '$(dataset)' --db-path $(DEMO)/pipeline_stats.db $(ARGS)

test: build
	ctest --preset $(PRESET) --no-tests=error

test-dev test-tsan:
	$(MAKE) test PRESET=$(@:test-%=%)

bench: build
	$(need_dataset)
	$(BUILD)/bench/weir-bench $(BENCH_ARGS)
	@echo
	@echo "There is more:"
	@echo "  $(BUILD)/bench/weir-bench decode --dataset-dir DIR --by-class   the same for each codec and size"
	@$(if $(PEERS),:,echo "  bench/peers/setup                                           Python's libraries, for --peers")
	@echo "  $(BUILD)/bench/weir-bench engine                                what an item costs on its way: six minutes"
	@echo "  $(BUILD)/bench/weir-bench stop                                  how long it takes to stop"

# Builds nothing that is there, so that `make && sudo make install` leaves no files of root's in the build folder.
install:
	@test -f $(BUILD)/build.ninja || $(MAKE) build
	cmake --install $(BUILD) --prefix '$(PREFIX)'
	@test -n "$(DESTDIR)" || test "$$(id -u)" != 0 || ldconfig

format:
	git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	rm -rf build
