# A thin layer over CMake; everything it does can be done with `cmake --preset …` and `ctest --preset …` as well.

PRESET ?= release
PREFIX ?= /usr/local
CMAKE_ARGS ?=
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
ARGS ?=

BUILD := build/$(PRESET)
DEMO := build/demo
PEERS := $(wildcard build/peers/bin/python)
BENCH_ARGS ?= decode --dataset-dir '$(dataset)' --concurrency 1,2,4 --runs 3 $(if $(PEERS),--peers)

# What demo and bench run on: the user's folder, or ours, made when it is missing.
dataset = $(or $(DATASET),$(DEMO)/dataset)
need_dataset = $(if $(DATASET),,./scripts/make-dataset $(DEMO)/dataset)

.PHONY: help demo test test-dev test-tsan build programs install uninstall deb wheel bench torture soak coverage site format clean setup
.DEFAULT_GOAL := build

define HELP
make demo       install what is missing, build the program weir, decode a small video dataset, print the summary
                (DATASET=DIR make demo uses your own folder; ARGS="--concurrency 4" adds options of weir record)
make test       install what is missing, build, run all tests
make build      build (PRESET=release, dev or tsan)
make test-dev   the tests under AddressSanitizer and UndefinedBehaviorSanitizer
make test-tsan  the tests under ThreadSanitizer
make bench      build and run weir-bench decode on the demo's dataset (or DATASET=DIR): minutes; also compared with
                Python's libraries once bench/peers/setup has been run
                (BENCH_ARGS="engine --quick" make bench runs something else)
make torture    the long form of the torture tests: faults, kills, full disks, damage, fuzzing; an hour and a half at most
                (SECONDS_EACH=60: each part for a minute)
make soak       random pipelines for ten minutes (SECONDS_EACH=N); memory, descriptors and threads must not grow
make coverage   which lines of the libraries the tests run (needs gcovr); the page is in build/coverage/report
make site       the documentation as a site, in build/site/html (needs Python; takes MkDocs from PyPI)
make install    install what was built, below PREFIX (default /usr/local)
make uninstall  remove what make install has installed, and the folders that it has made
make deb        Debian packages, in build/deb
make wheel      the Python module with all libraries that it needs, in build/wheel/dist; tried with each Python from 3.11 that
                is here. The first time builds FFmpeg from Debian's source: minutes
make format     clang-format every C file
make clean      remove what was built
endef

help:
	$(info $(HELP))
	@:

setup:
	@./scripts/setup $(SETUP_ARGS)

build: setup
	cmake --preset $(PRESET) $(CMAKE_ARGS)
	cmake --build --preset $(PRESET) --parallel $(JOBS)

# The programs without the tests.
programs: setup
	cmake --preset $(PRESET) $(CMAKE_ARGS)
	cmake --build --preset $(PRESET) --parallel $(JOBS) --target programs

demo: setup
	cmake --preset $(PRESET) $(CMAKE_ARGS)
	cmake --build --preset $(PRESET) --parallel $(JOBS) --target weir-command
	$(need_dataset)
	$(BUILD)/tools/weir record '$(dataset)' --db-path $(DEMO)/pipeline_stats.db --log-interval 1 $(ARGS)
	@echo
	@$(if $(DATASET),:,echo "damaged-0001.mp4 is damaged on purpose: its failure shows how failures are reported.")
	@echo "Your own videos: $(BUILD)/tools/weir record DIR"

test: build
	ctest --preset $(PRESET) --no-tests=error

test-dev test-tsan:
	$(MAKE) test PRESET=$(@:test-%=%)

bench: build
	$(need_dataset)
	$(BUILD)/bench/weir-bench $(BENCH_ARGS)
	@echo
	@echo "Other benches:"
	@$(if $(PEERS),:,echo "  bench/peers/setup                                           installs Python's libraries, for --peers")
	@echo "  $(BUILD)/bench/weir-bench engine                                the cost of passing an item on: six minutes"
	@echo "  python3 bench/option_costs.py '$(dataset)'                      what each option of decoding saves and loses"
	@echo "  $(BUILD)/bench/weir-bench stop                                  how long it takes to stop"

# Builds nothing that is there, so that `make && sudo make install` leaves no files of root's in the build folder. An
# installation elsewhere, removed again, tells which folders it makes; uninstall removes only these.
install:
	@test -f $(BUILD)/build.ninja || $(MAKE) build
	@prefix=$$(realpath -m '$(PREFIX)'); staged='$(CURDIR)/$(BUILD)/staged'; rm -rf "$$staged"; \
		DESTDIR="$$staged" cmake --install $(BUILD) --prefix "$$prefix" >/dev/null && \
		find "$$staged" -mindepth 1 -type d -printf '$(DESTDIR)/%P\n' | while IFS= read -r folder; do \
			[ -e "$$folder" ] || printf '%s\n' "$$folder"; \
		done >>$(BUILD)/install_folders.txt && rm -rf "$$staged"
	cmake --install $(BUILD) --prefix '$(PREFIX)'
	@test -n "$(DESTDIR)" || test "$$(id -u)" != 0 || ldconfig

uninstall:
	@test -f $(BUILD)/install_manifest.txt || { echo "make: nothing was installed from $(BUILD)" >&2; exit 1; }
	sed 's|^|$(DESTDIR)|' $(BUILD)/install_manifest.txt | xargs -d '\n' rm -f
	@sort -ru $(BUILD)/install_folders.txt 2>/dev/null | tr '\n' '\0' | xargs -0 -r rmdir --ignore-fail-on-non-empty
	rm -f $(BUILD)/install_manifest.txt $(BUILD)/install_folders.txt
	@test -n "$(DESTDIR)" || test "$$(id -u)" != 0 || ldconfig

deb: SETUP_ARGS = --deb
deb: setup
	./scripts/make-deb

wheel: SETUP_ARGS = --wheel
wheel: setup
	packaging/wheel/build
	packaging/wheel/try

# Parts that end on their own or after SECONDS_EACH. Faults and fuzzing get the most time: twenty minutes each.
torture: build
	tests/torture/run --build $(BUILD) --seconds $(or $(SECONDS_EACH),1200) faults
	tests/torture/run --build $(BUILD) --seconds $(or $(SECONDS_EACH),250) kill full lock stop clips databases names server clock geometry times
	tests/torture/run --build $(BUILD) --seconds $(or $(SECONDS_EACH),1200) fuzz

soak: build
	tests/torture/run --build $(BUILD) --seconds $(or $(SECONDS_EACH),600) soak

# Not counted: the torture tests, whose faults also hit the writing of the counts, and processes that are killed. Those
# that _exit() are (see the preset), and with this umask those of other users, too.
coverage:
	@command -v gcovr >/dev/null || { echo "make: gcovr is missing: apt-get install gcovr" >&2; exit 1; }
	$(MAKE) build PRESET=coverage
	find build/coverage -name '*.gcda' -delete
	umask 0; WEIR_FAULTS=60 ctest --preset coverage --no-tests=error
	mkdir -p build/coverage/report
	@for folder in stages dataset stats engine; do \
		gcovr --root . --filter "$$folder/" --gcov-ignore-parse-errors -j $(JOBS) --html-details build/coverage/report/$$folder.html \
			--print-summary build/coverage | sed -n "s/^lines:/$$folder:/p"; \
	done

# The pages come from docs/, the commands' help and the headers; the pictures from runs.
site: programs
	NO_MKDOCS_2_WARNING=1 scripts/make-site

format:
	git ls-files '*.c' '*.h' '*.hpp' '*.cpp' | xargs clang-format -i

clean:
	rm -rf build
