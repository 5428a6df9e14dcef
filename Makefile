# A thin front for the CMake presets: `make run` and `make test` are all that a newcomer needs.
PRESET ?= release
BUILD  := build/$(PRESET)
JOBS   ?= $(shell nproc)
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
PROMPT ?= It is a truth universally acknowledged

.PHONY: help run test configure build install dev asan tsan fuzz lint setup clean
help:
	@echo "make run    install what is missing, build, and continue a prompt with the embedded model"
	@echo "make test   install what is missing, build, and run the whole test suite"
	@echo "make build  program and plugins only (PRESET=release|dev|asan|tsan); the program is $(BUILD)/bin/dovetail"
	@echo "make install  build, and install below PREFIX ($(PREFIX)): program, plugins, configs, SDK"
	@echo "make asan   build and test under AddressSanitizer and UndefinedBehaviorSanitizer"
	@echo "make tsan   build and test under ThreadSanitizer"
	@echo "make fuzz   build the fuzz targets with clang and run each for FUZZ_SECONDS ($(FUZZ_SECONDS)), two at a time"
	@echo "make lint   hold the sources to .clang-format and .clang-tidy (needs both tools; takes about an hour)"

setup:
	@tools/setup.sh $(SETUP)

configure: setup
	@cmake --preset $(PRESET)

build: configure
	@cmake --build --preset $(PRESET) -j $(JOBS) --target program

run: build
	@$(BUILD)/bin/dovetail run "$(PROMPT)"

install: build
	@cmake --install $(BUILD) --prefix $(PREFIX)

test: SETUP := test
test: configure
	@cmake --build --preset $(PRESET) -j $(JOBS)
	@ctest --preset $(PRESET) -j $(JOBS)

dev asan tsan:
	@$(MAKE) --no-print-directory test PRESET=$@

fuzz: SETUP := fuzz
fuzz: setup
	@cmake --preset fuzz
	@cmake --build --preset fuzz -j $(JOBS)
	@tests/fuzz/run.py --seconds $(FUZZ_SECONDS)

lint:
	@tools/lint.sh

clean:
	@rm -rf build
