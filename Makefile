# Thin names over meson; see CONTRIBUTING.md.
BUILD ?= build

all: $(BUILD)/build.ninja
	ninja -C $(BUILD)

$(BUILD)/build.ninja:
	meson setup --cross-file tools/musl.cross $(BUILD)

test: all
	meson test -C $(BUILD) --print-errorlogs

.PHONY: all test
