# Thin names over meson and tools/; see CONTRIBUTING.md.
BUILD ?= build

all: $(BUILD)/build.ninja
	ninja -C $(BUILD)

# The programs and their manual pages, without tests and benchmarks.
burrow: $(BUILD)/build.ninja
	ninja -C $(BUILD) programs

$(BUILD)/build.ninja:
	meson setup --cross-file tools/musl.cross $(BUILD)

# The suites that need no virtual machine. ./test runs all that gates.
test: all
	meson test -C $(BUILD) --print-errorlogs --no-suite vm

check:
	tools/check

fuzz:
	tools/fuzz

# The stock clients of others, with the long suite of their command line.
compat: all
	tools/setup compat
	meson test -C $(BUILD) --print-errorlogs --suite compat --suite compat-cli

bench: all
	tools/setup bench
	bench/run

# The server under load; see tests/load/soak.
load: all
	BURROW_TEST_CACHE=$(BUILD)/test-cache tests/load/soak
	BUILD=$(BUILD) tests/load/networks
	BURROW_TEST_CACHE=$(BUILD)/test-cache tests/load/networked
	BURROW_TEST_CACHE=$(BUILD)/test-cache tests/load/ssh
	BURROW_TEST_CACHE=$(BUILD)/test-cache tests/load/ssh-hostile

# Every runtime that is shipped, made and used; takes minutes, and downloads.
runtimes: all
	BURROW_TEST_CACHE=$(BUILD)/test-cache tests/runtimes/make-runtimes

# An hour of bad days (SOAK_MINUTES), and what they leave; see tests/soak/soak.
soak: all
	BURROW_TEST_CACHE=$(BUILD)/test-cache tests/soak/soak

# The reference of burrow's own API, as pages in docs/api, from the document that a server answers with.
reference: $(BUILD)/build.ninja
	ninja -C $(BUILD) src/api-document
	$(BUILD)/src/api-document >$(BUILD)/api.json
	tools/api-reference $(BUILD)/api.json docs/api

format:
	git ls-files '*.[ch]' | xargs clang-format -i

# Line coverage of the suites; see tools/coverage.
coverage:
	tools/setup build run test
	tools/coverage

install: burrow
	meson install -C $(BUILD) --no-rebuild

clean:
	rm -rf build build-*

.PHONY: all burrow test check compat coverage fuzz bench load soak runtimes reference format install clean
