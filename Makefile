# lapse: `make` builds build/lapse, `make demo` shows it, `make test` proves it.
BUILD ?= build
SANITIZED ?= build-san
THREADS ?= build-tsan
MESON_SAN = --werror -Db_sanitize=address,undefined -Db_lundef=false -Db_pie=false

.PHONY: all demo test bench docs setup sanitized threads format clean

all: setup
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) >/dev/null
	@ninja -C $(BUILD) --quiet

sanitized: setup
	@test -f $(SANITIZED)/build.ninja || meson setup $(SANITIZED) $(MESON_SAN) >/dev/null
	@ninja -C $(SANITIZED) --quiet

# The program alone, for ThreadSanitizer, which does not go together with the others.
threads: setup
	@test -f $(THREADS)/build.ninja || meson setup $(THREADS) --werror -Db_sanitize=thread -Db_lundef=false >/dev/null
	@ninja -C $(THREADS) --quiet lapse

demo: all
	@scripts/demo $(BUILD)/lapse

test: all sanitized threads
	@LAPSE_BUILD_PLAIN=$(abspath $(BUILD)) LAPSE_BUILD_TSAN=$(abspath $(THREADS)) tests/run $(SANITIZED)

# lapse beside hand-written statements, as ratios in one run; BENCH="--rows 100000 orphans" narrows it.
bench: all
	@LAPSE=$(abspath $(BUILD)/lapse) /usr/bin/python3 -B bench/bench.py $(BENCH)

# What the program itself knows better: the reference, and what the examples of the pages print.
docs: all
	@LAPSE=$(abspath $(BUILD)/lapse) /usr/bin/python3 -B tests/docs/test_docs.py --write
	@LAPSE=$(abspath $(BUILD)/lapse) /usr/bin/python3 -B tests/contracts/test_pages.py --write

setup:
	@scripts/setup

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	rm -rf $(BUILD) $(SANITIZED) $(THREADS)
